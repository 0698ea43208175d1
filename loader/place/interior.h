// SPDX-License-Identifier: Apache-2.0
// Nodes far from any other device.
#pragma once

#include "place/problem.h"

namespace backplane {

// A component label for each interior node, that is, one more than `margin` edges away from any node of another device:
// the first node of its connected component of interior nodes. BP_NONE for all other nodes. Linear.
std::vector<uint32_t> label_interior(const Problem& problem, const Assignment& assignment, uint32_t margin);

}  // namespace backplane
