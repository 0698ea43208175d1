// SPDX-License-Identifier: Apache-2.0
// The ABI's arrays for a graph or for an island of it. The view borrows names and weights from the model, which it
// keeps alive, and owns the arrays.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backplane/graph.h"
#include "base/known_opsets.h"
#include "ir/graph.h"
#include "view/op_versions.h"

namespace backplane::model {

// The weights that were replaced in a session.
struct Refit {
  bool possible = false;  // whether weights may be replaced later: BP_WEIGHT_REFIT
  ReplacedWeights replaced;
};

// Ids of the function calls that appear as one node each, in ascending order. For nested calls, only the outermost call
// appears.
using WholeCalls = std::vector<uint64_t>;

// All calls that can appear as one node, in all graphs of a model.
WholeCalls all_calls(const Model& model);

class View {
 public:
  // A view of the whole graph. Value i of the view is value i of the graph. If no call appears as one node, node i of
  // the view is node i of the graph.
  static std::shared_ptr<const View> whole(const std::shared_ptr<const Model>& model, const KnownOpsets& known,
                                           const WholeCalls& calls = {});
  // A view of nodes of the outermost graph (ascending) as a separate graph. Its inputs are the values that the nodes
  // read but do not write, except constants, which become weights. Its outputs are `outputs` (graph values), in that
  // order.
  static std::shared_ptr<const View> island(const std::shared_ptr<const Model>& model, std::span<const uint32_t> nodes,
                                            std::span<const ValueId> outputs, const KnownOpsets& known,
                                            const Refit& refit = {}, const WholeCalls& calls = {});
  // A view of one node, from any graph of the model, as a separate graph.
  static std::shared_ptr<const View> node(const std::shared_ptr<const Model>& model, const Graph& graph, uint32_t node,
                                          const KnownOpsets& known);
  ~View();

  const bp_graph_t* abi() const;
  // The graph nodes that a node of the view represents: a single node, or all nodes of a call's body.
  struct Nodes {
    uint32_t first, count;
  };
  Nodes graph_nodes(uint32_t view_node) const;
  ValueId graph_value(uint32_t view_value) const;
  // Whether the form of the node, or of a node in its subgraphs, is too new for the plugin. If so, the loader itself
  // reports BP_REASON_OPSET for the node.
  bool too_new(uint32_t view_node) const;
  // Why the node is too new, and which opset the device knows. Empty if the node is not too new.
  std::string why_too_new(uint32_t view_node) const;

 private:
  struct Impl;
  explicit View(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace backplane::model
