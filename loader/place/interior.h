// SPDX-License-Identifier: Apache-2.0
// Finds nodes that are far from the borders between devices.
#pragma once

#include "place/problem.h"

namespace backplane {

// A border node writes or reads a value whose producer and readers are not all on one device; values from the host do
// not count. An interior node is more than `margin` values away from every border node, where a value connects its
// producer and all its readers. Labels each interior node with the first node of its connected component of interior
// nodes, and all other nodes with BP_NONE. Linear time.
std::vector<uint32_t> label_interior(const Problem& problem, const Assignment& assignment, uint32_t margin);

}  // namespace backplane
