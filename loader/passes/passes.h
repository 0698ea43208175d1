// SPDX-License-Identifier: Apache-2.0
// The passes from a parsed model to the canonical one, in the order in which import.cpp calls them. Between them,
// ops/upgrade/upgrade.h and ops/infer/infer.h.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace backplane::model {

// ONNX's rules: opsets are known, operators exist, counts and attributes fit, every value is made once, nothing reads
// what nobody makes, nothing waits for itself. Sets Node::schema and since_version (in function bodies too) and puts
// nodes in topological order.
Status check(Model& model);
// The rules of one node against its schema: how many inputs and outputs, which attributes. Cuts omitted ones off the
// ends.
Status check_node(Node& node);
// Replaces calls of the model's own functions by their bodies, and notes in Graph::calls which nodes are whose.
Status inline_functions(Model& model);
// Turns `Constant` nodes into weights.
Status absorb_constants(Model& model);
// Merges what the upgrade had to spell out while shapes were unknown.
void settle(Model& model);
// Drops what does nothing in inference: Identity, Dropout, casts to the type at hand, and
// nodes whose results nobody reads.
void prune(Model& model);
// Finds the nodes that are left of each call's body, and whether the call can still stand for them.
void find_calls(Model& model);

// Topological order of one graph's nodes, stable. BP_INVALID_MODEL when there is a cycle; names two nodes on it.
// `moved` tells whether the order changed.
Status sort_nodes(Graph& graph, bool& moved);

}  // namespace backplane::model
