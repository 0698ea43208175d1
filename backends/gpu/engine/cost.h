// SPDX-License-Identifier: Apache-2.0
// The expected time of a node: of its arithmetic or its memory traffic at the device's throughput, whichever is longer.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "engine/device_caps.h"

namespace backplane::gpu {

// 0 when extents are unknown.
double expected_seconds(const DeviceCaps& caps, const sdk::Node& node);

}  // namespace backplane::gpu
