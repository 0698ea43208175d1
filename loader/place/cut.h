// SPDX-License-Identifier: Apache-2.0
// Determines a graph's islands and the values that cross between them.
#pragma once

#include "place/place.h"

namespace backplane {

// Fills in Placement::islands and Placement::copies. Takes time linear in the numbers of nodes and operands.
void cut(const model::Graph& graph, const Problem& problem, const Solution& found, Placement& placement);

}  // namespace backplane
