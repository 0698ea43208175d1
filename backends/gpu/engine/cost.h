// SPDX-License-Identifier: Apache-2.0
// A node's expected time: a launch, plus its arithmetic or its memory traffic, whichever takes the device longer.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "engine/device_caps.h"

namespace backplane::gpu {

// 0 if extents are unknown.
double expected_seconds(const DeviceCaps& caps, const sdk::Node& node);

}  // namespace backplane::gpu
