// SPDX-License-Identifier: Apache-2.0
// Checks how work items are divided into groups.
#include "engine/tile.h"

#include <gmock/gmock.h>

#include "engine/device_caps.h"

namespace backplane::gpu {
namespace {

DeviceCaps limited() {
  DeviceCaps caps;
  caps.max_group = 1024;
  caps.max_groups_across = 65535;
  return caps;
}

TEST(Ranges, GroupsGrowWhereTheDeviceLimitsTheirNumber) {
  const DeviceCaps caps = limited();
  for (const int64_t x : {1, 7, 1000}) {
    for (const int64_t y : {1, 65535, 65536, 1'000'000}) {
      for (const int64_t z : {1, 65535, 65536, 3 * 65535, 1'000'000}) {
        SCOPED_TRACE(std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(z));
        const auto [global, local] = ranges_of_items(caps, x, y, z);
        EXPECT_GE(global[0], static_cast<size_t>(x));
        EXPECT_GE(global[1], static_cast<size_t>(y));
        EXPECT_EQ(global[2], static_cast<size_t>(z));  // kernels do not check their bounds along z
        EXPECT_LE(local[0] * local[1] * local[2], 256u);
        for (const size_t d : {0u, 1u, 2u}) EXPECT_EQ(global[d] % local[d], 0u);
        for (const size_t d : {1u, 2u}) EXPECT_LE(global[d] / local[d], caps.max_groups_across);
      }
    }
  }
}

TEST(Ranges, GroupsStayFlatWithinTheLimit) {
  const auto [global, local] = ranges_of_items(limited(), 1000, 65535, 65535);
  EXPECT_EQ(local, (std::array<size_t, 3>{256, 1, 1}));
}

// Only 1 and 65537 divide this prime number, and a group cannot have 65537 items along z.
TEST(Ranges, APrimeNumberOfPlanesIsNotDivided) {
  EXPECT_EQ(ranges_of_items(limited(), 4, 4, 65537).local[2], 1u);
}

}  // namespace
}  // namespace backplane::gpu
