// SPDX-License-Identifier: Apache-2.0
// What a node is expected to take: its arithmetic or its memory traffic at the device's rates, whichever is more.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "engine/facts.h"

namespace backplane::gpu {

// 0 when extents are unknown.
double expected_seconds(const Facts& facts, const sdk::Node& node);

}  // namespace backplane::gpu
