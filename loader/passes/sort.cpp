// SPDX-License-Identifier: Apache-2.0
#include "passes/sort.h"

#include <algorithm>
#include <queue>

#include "ir/subgraphs.h"

namespace backplane::model {
namespace {

// For each value, returns the node that writes it.
std::vector<uint32_t> producers(const Graph& graph) {
  std::vector<uint32_t> made_by(graph.values.size(), BP_NONE);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId output : graph.nodes[n].outputs) {
      if (output != BP_NONE) made_by[output] = n;
    }
  }
  return made_by;
}

// Calls `visit` with each node that node `n` depends on.
template <class Visit>
void each_dependency(const Graph& graph, const std::vector<uint32_t>& made_by, uint32_t n, Visit visit) {
  const auto one = [&](ValueId value) {
    if (value != BP_NONE && made_by[value] != BP_NONE) visit(made_by[value]);
  };
  for (const ValueId input : graph.nodes[n].inputs) one(input);
  for (const ValueId captured : captures(graph, graph.nodes[n])) one(captured);
}

// Whether every value is written before it is read.
bool is_sorted(const Graph& graph) {
  std::vector<bool> read(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input != BP_NONE) read[input] = true;
    }
    for (const ValueId captured : captures(graph, node)) read[captured] = true;
    for (const ValueId output : node.outputs) {
      if (output != BP_NONE && read[output]) return false;
    }
  }
  return true;
}

// Returns an error that names two nodes of a cycle. To find them, walks backwards through nodes that never became ready
// until a node repeats.
Status cycle(const Graph& graph, const std::vector<uint32_t>& made_by, const std::vector<uint32_t>& waits) {
  uint32_t n =
      static_cast<uint32_t>(std::find_if(waits.begin(), waits.end(), [](uint32_t w) { return w > 0; }) - waits.begin());
  std::vector<bool> seen(graph.nodes.size());
  uint32_t after = n;
  while (!seen[n]) {
    seen[n] = true;
    after = n;
    uint32_t before = n;
    each_dependency(graph, made_by, n, [&](uint32_t d) {
      if (waits[d] > 0) before = d;
    });
    n = before;
  }
  return Status(BP_INVALID_MODEL, "the graph has a cycle: " + graph.nodes[n].label() + " and " +
                                      graph.nodes[after].label() + " wait for each other")
      .with_node(graph.nodes[n].id);
}

}  // namespace

Status sort_nodes(Graph& graph, bool& moved) {
  moved = false;
  if (is_sorted(graph)) return {};
  const std::vector<uint32_t> made_by = producers(graph);

  const uint32_t count = static_cast<uint32_t>(graph.nodes.size());
  std::vector<uint32_t> waits(count);
  std::vector<std::vector<uint32_t>> readers(count);
  for (uint32_t n = 0; n < count; ++n) {
    each_dependency(graph, made_by, n, [&](uint32_t before) {
      ++waits[n];
      readers[before].push_back(n);
    });
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>
      ready;  // lowest number first, which keeps the file's order if possible
  for (uint32_t n = 0; n < count; ++n) {
    if (waits[n] == 0) ready.push(n);
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  std::vector<uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const uint32_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const uint32_t reader : readers[n]) {
      if (--waits[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() < count) return cycle(graph, made_by, waits);
  for (const uint32_t n : order) sorted.push_back(std::move(graph.nodes[n]));
  graph.nodes = std::move(sorted);
  moved = true;
  return {};
}

}  // namespace backplane::model
