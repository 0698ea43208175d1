// SPDX-License-Identifier: Apache-2.0
// Nodes that a device takes as one: which of them can be, and placements that take them whole.
#pragma once

#include <functional>

#include "base/status.h"
#include "place/problem.h"

namespace backplane {

// Fills in Problem::groups. Of overlapping groups of a device the first listed counts. An atomic group is left out, and
// its nodes can't be on the device, where one of them is refused, where review put them into different parts, or where
// its being one would close a cycle: a path leaves it and comes back.
void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem);

// Some placement that takes every atomic group whole: each node gets the first of its devices, in the order that
// `preference` gives (`devices` positions from the returned pointer), that what was decided before leaves it. Nodes
// with one choice left are decided first. BP_NONE for nodes that are left with none.
Labels assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference);

}  // namespace backplane
