// SPDX-License-Identifier: Apache-2.0
// The subgraphs of a node, such as the branches of an If.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace backplane::model {

// The subgraphs in the node's attributes. Owned by `graph`.
std::vector<Graph*> bodies(const Graph& graph, const Node& node);
// The values of `graph` that the node's subgraphs read: each value once, in ascending order.
std::vector<ValueId> captures(const Graph& graph, const Node& node);

}  // namespace backplane::model
