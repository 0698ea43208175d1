// SPDX-License-Identifier: Apache-2.0
// A placement for the report only, when no device supports some of the nodes.
#pragma once

#include "place/place.h"

namespace backplane {

// Like place(), but nodes that no device supports (with BP_FALLBACK_FORBID: that the first device does not support) are
// not an error: their device and island are BP_NONE. The other nodes are placed as if the first device ran the
// unsupported ones, at their estimated cost, and without a limit on the number of islands. Such a placement cannot run,
// and has no copies, missed speedups or cost.
Result<Placement> place_partly(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                               const Policy& policy, const PlaceLimits& limits = {});

}  // namespace backplane
