// SPDX-License-Identifier: Apache-2.0
// A placement for the report alone, where some nodes are taken by no device.
#pragma once

#include "place/place.h"

namespace backplane {

// As place(), but a node that no device takes does not fail it: its device and island are BP_NONE, and the others are
// placed as if the first device ran it at no cost. Such a placement has no copies, savings and cost: it cannot run.
Result<Placement> place_partly(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                               const Policy& policy);

}  // namespace backplane
