// SPDX-License-Identifier: Apache-2.0
// From devices of nodes to islands.
#pragma once

#include "place/place.h"

namespace backplane {

// Fills in Placement::island and Placement::islands from Placement::device and Placement::part. Every island is convex and the islands are acyclic.
//
// Each node gets a level: the highest of its producers', one more where the producer has another device or part. Nodes of one
// device, part and level are an island. Along any edge the level never falls, and it rises whenever device or part change, so a path that
// leaves an island can't come back to it. One pass over nodes and operands.
void cut(const model::Graph& graph, Placement& placement);

}  // namespace backplane
