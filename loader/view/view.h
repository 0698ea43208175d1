// SPDX-License-Identifier: Apache-2.0
// The ABI's arrays for a graph, or for an island of it. Borrows names and weights from the model; owns the arrays.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "backplane/graph.h"
#include "base/known_opsets.h"
#include "ir/graph.h"

namespace backplane::model {

// Weights that were replaced in a session.
struct Refit {
  bool possible = false;  // more may be replaced later: BP_WEIGHT_REFIT
  std::map<WeightId, std::shared_ptr<const Weight>> replaced;
};

// Function calls that appear as one node each, by node id, ascending. Of nested calls the outermost appears.
using WholeCalls = std::vector<uint64_t>;

// All calls that can be shown as one node, in all graphs of a model.
WholeCalls all_calls(const Model& model);

class View {
 public:
  // The whole graph. View value i is graph value i; if no call is whole, view node i is graph node i.
  static std::shared_ptr<const View> whole(const std::shared_ptr<const Model>& model, const KnownOpsets& known,
                                           const WholeCalls& calls = {});
  // Nodes of the outermost graph, ascending, as a graph of their own. Its inputs are the values that they read and do
  // not write (constants become weights); its outputs are `outputs` (graph values) in that order.
  static std::shared_ptr<const View> island(const std::shared_ptr<const Model>& model, std::span<const uint32_t> nodes,
                                            std::span<const ValueId> outputs, const KnownOpsets& known,
                                            const Refit& refit = {}, const WholeCalls& calls = {});
  // One node of any graph of the model as a graph of its own.
  static std::shared_ptr<const View> node(const std::shared_ptr<const Model>& model, const Graph& graph, uint32_t node,
                                          const KnownOpsets& known);
  ~View();

  const bp_graph_t* abi() const;
  // The graph nodes that a node of the view represents: one, or all of a call's body.
  struct Nodes {
    uint32_t first, count;
  };
  Nodes graph_nodes(uint32_t view_node) const;
  ValueId graph_value(uint32_t view_value) const;
  // Whether the node's form is too new for the plugin: then the loader itself reports BP_REASON_OPSET for it.
  bool too_new(uint32_t view_node) const;

 private:
  struct Impl;
  explicit View(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace backplane::model
