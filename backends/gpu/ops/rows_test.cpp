// SPDX-License-Identifier: Apache-2.0
// Checks how many work items share a row.
#include "ops/rows.h"

#include <gmock/gmock.h>

namespace backplane::gpu {
namespace {

TEST(Rows, LanesAreAtMostAGroup) {
  struct Case {
    uint32_t kind, float_lanes;
    size_t max_group;
    int64_t lanes;
  };
  for (const auto& [kind, float_lanes, max_group, lanes] : {Case{BP_DEVICE_CPU, 16, 4096, 16},
                                                            {BP_DEVICE_CPU, 16, 8, 8},
                                                            {BP_DEVICE_CPU, 1, 4096, 1},
                                                            {BP_DEVICE_GPU, 1, 1024, 64},
                                                            {BP_DEVICE_GPU, 1, 48, 32}}) {
    DeviceCaps caps;
    caps.kind = kind;
    caps.float_lanes = float_lanes;
    caps.max_group = max_group;
    EXPECT_EQ(rows_of(caps, {3, 1000}, 1, 2).lanes, lanes) << kind << " " << float_lanes << " " << max_group;
  }
}

}  // namespace
}  // namespace backplane::gpu
