// SPDX-License-Identifier: Apache-2.0
// Topological order.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Sorts one graph's nodes topologically, stable. BP_INVALID_MODEL if there is a cycle; names two of its nodes.
// `moved`: whether the order changed.
Status sort_nodes(Graph& graph, bool& moved);

}  // namespace backplane::model
