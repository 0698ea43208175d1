// SPDX-License-Identifier: Apache-2.0
// Finds nodes that are far from all nodes of other devices.
#pragma once

#include "place/problem.h"

namespace backplane {

// Labels each interior node, that is, each node more than `margin` edges away from all nodes of other devices, with the
// first node of its connected component of interior nodes. BP_NONE for all other nodes. Linear time.
std::vector<uint32_t> label_interior(const Problem& problem, const Assignment& assignment, uint32_t margin);

}  // namespace backplane
