// SPDX-License-Identifier: Apache-2.0
// Finds nodes that are far from all nodes on other devices.
#pragma once

#include "place/problem.h"

namespace backplane {

// An interior node is one that is more than `margin` edges away from all nodes on other devices. Labels each interior
// node with the first node of its connected component of interior nodes, and all other nodes with BP_NONE. Linear time.
std::vector<uint32_t> label_interior(const Problem& problem, const Assignment& assignment, uint32_t margin);

}  // namespace backplane
