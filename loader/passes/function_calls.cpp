// SPDX-License-Identifier: Apache-2.0
// For each function call, finds the nodes of its body that remain after the passes. The call can replace these nodes if
// they are adjacent, no other node or graph output uses their intermediate values, and each input of the call is still
// read by them, or is a constant or a graph input. (Any other value may have been removed.)
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
        read_by_(graph.values.size(), BP_NONE),
        output_of_(graph.values.size(), BP_NONE),
        is_input_(graph.values.size()) {
    for (const ValueId input : graph.inputs) is_input_[input] = true;
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
      if (torn[c] || !join_nodes(graph_.calls[c], c)) graph_.calls[c].count = 0;
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

  // Removes outputs of the call that its nodes do not write. Returns whether the call can replace its nodes.
  bool join_nodes(Call& call, uint32_t index) {
    if (call.count == 0) return false;
    const uint32_t end = call.first + call.count;
    for (ValueId& output : call.node.outputs) {
      if (output == BP_NONE) continue;
      const bool inside = made_by_[output] >= call.first && made_by_[output] < end;
      if (!inside || output_of_[output] == index) {
        output = BP_NONE;  // written by a node outside the call, or an earlier output of it
      } else {
        output_of_[output] = index;
      }
    }
    for (uint32_t n = call.first; n < end; ++n) {
      for (const ValueId output : graph_.nodes[n].outputs) {
        const bool escapes = output != BP_NONE && last_read_[output] != BP_NONE && last_read_[output] >= end;
        if (escapes && output_of_[output] != index) return false;
      }
      each_read(n, [&](ValueId value) { read_by_[value] = index; });
    }
    return std::ranges::all_of(call.node.inputs, [&](ValueId input) {
      return input == BP_NONE || read_by_[input] == index || graph_.values[input].weight != BP_NONE || is_input_[input];
    });
  }

  Graph& graph_;
  std::vector<uint32_t> made_by_;    // for each value: the node that writes it, or BP_NONE
  std::vector<uint32_t> last_read_;  // for each value: the last node that reads it; kOutside for a graph output
  std::vector<uint32_t> read_by_;    // for each value: the last call whose nodes read it
  std::vector<uint32_t> output_of_;  // for each value: the last call that outputs it
  std::vector<bool> is_input_;       // for each value: whether it is an input of the graph
};

void find_in(Graph& graph) {
  if (!graph.calls.empty()) Finder(graph).find();
  for (const auto& body : graph.subgraphs) find_in(*body);
}

}  // namespace

void find_function_calls(Model& model) {
  find_in(model.graph);
}

}  // namespace backplane::model
