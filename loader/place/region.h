// SPDX-License-Identifier: Apache-2.0
// The inside of what one device has.
#pragma once

#include "place/problem.h"

namespace backplane {

// For each node the first of those that it hangs together with through nodes of its device that are more than `margin`
// steps away from any node of another device; BP_NONE where it is not so far itself. Linear.
std::vector<uint32_t> inner_regions(const Problem& problem, const Labels& labels, uint32_t margin);

}  // namespace backplane
