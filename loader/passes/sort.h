// SPDX-License-Identifier: Apache-2.0
// Topological order.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Sorts a graph's nodes topologically, keeping their order where possible. Sets `moved` to whether the order changed.
// Returns BP_INVALID_MODEL if there is a cycle, and names two of its nodes.
Status sort_nodes(Graph& graph, bool& moved);

}  // namespace backplane::model
