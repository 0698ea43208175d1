// SPDX-License-Identifier: Apache-2.0
// A node's expected time: one kernel launch, plus the time for its arithmetic or its memory traffic, whichever is
// longer.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "engine/device_caps.h"

namespace backplane::gpu {

// Returns 0 if the node's extents are unknown.
double expected_seconds(const DeviceCaps& caps, const sdk::Node& node);

}  // namespace backplane::gpu
