// SPDX-License-Identifier: Apache-2.0
// What became of each call's body once the passes were through with it. A call stands for its nodes as long as they are
// adjacent, nothing else reads what they make among themselves, and what the call reads is still there to be read.
#include <algorithm>

#include "ir/subgraphs.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

class Finder {
 public:
  explicit Finder(Graph& graph)
      : graph_(graph),
        made_by_(graph.values.size(), BP_NONE),
        last_read_(graph.values.size(), BP_NONE),
        listed_(graph.values.size(), BP_NONE) {
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId output : graph.nodes[n].outputs) {
        if (output != BP_NONE) made_by_[output] = n;
      }
      each_read(n, [&](ValueId value) { last_read_[value] = n; });
    }
    constexpr uint32_t kOutside = BP_NONE - 1;
    for (const ValueId output : graph.outputs) {
      if (output != BP_NONE) last_read_[output] = kOutside;
    }
  }

  void find() {
    std::vector<bool> torn(graph_.calls.size());
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      for (uint32_t c = graph_.nodes[n].call; c != BP_NONE; c = graph_.calls[c].caller) {
        Call& call = graph_.calls[c];
        if (call.count == 0) call.first = n;
        if (call.first + call.count++ != n) torn[c] = true;
      }
    }
    for (uint32_t c = 0; c < graph_.calls.size(); ++c) {
      if (torn[c] || !tie(graph_.calls[c], c)) graph_.calls[c].count = 0;
    }
  }

 private:
  template <class Visit>
  void each_read(uint32_t n, Visit visit) const {
    const Node& node = graph_.nodes[n];
    for (const ValueId input : node.inputs) {
      if (input != BP_NONE) visit(input);
    }
    for (const ValueId captured : captures(graph_, node)) visit(captured);
  }

  // Leaves the call with the outputs that its nodes make. False where it cannot stand for them.
  bool tie(Call& call, uint32_t index) {
    if (call.count == 0) return false;
    const uint32_t end = call.first + call.count;
    std::vector<ValueId> made;
    for (ValueId& output : call.node.outputs) {
      if (output == BP_NONE) continue;
      const bool inside = made_by_[output] >= call.first && made_by_[output] < end;
      if (!inside || std::ranges::find(made, output) != made.end()) {
        output = BP_NONE;  // another value took its place
      } else {
        made.push_back(output);
      }
    }
    for (uint32_t n = call.first; n < end; ++n) {
      for (const ValueId output : graph_.nodes[n].outputs) {
        const bool escapes = output != BP_NONE && last_read_[output] != BP_NONE && last_read_[output] >= end;
        if (escapes && std::ranges::find(made, output) == made.end()) return false;
      }
      each_read(n, [&](ValueId value) { listed_[value] = index; });
    }
    return std::ranges::all_of(call.node.inputs, [&](ValueId input) {
      return input == BP_NONE || listed_[input] == index || graph_.values[input].weight != BP_NONE ||
             std::ranges::find(graph_.inputs, input) != graph_.inputs.end();
    });
  }

  Graph& graph_;
  std::vector<uint32_t> made_by_;    // by value: the node that makes it
  std::vector<uint32_t> last_read_;  // by value: the last node that reads it
  std::vector<uint32_t> listed_;     // by value: the last call that was seen to read it
};

void find_in(Graph& graph) {
  if (!graph.calls.empty()) Finder(graph).find();
  for (const auto& body : graph.subgraphs) find_in(*body);
}

}  // namespace

void find_calls(Model& model) {
  find_in(model.graph);
}

}  // namespace backplane::model
