// SPDX-License-Identifier: Apache-2.0
#include "engine/throughput.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace backplane::gpu {
namespace {

// What shortest_time returns if its measurements are `times`, in order, and then the last one again and again. Sets
// `calls` to the number of measurements.
double shortest_of(const std::vector<double>& times, size_t& calls) {
  calls = 0;
  return shortest_time([&] { return times[std::min(calls++, times.size() - 1)]; });
}

TEST(ShortestTime, IgnoresTheFirstCallAndDisturbances) {
  size_t calls = 0;
  EXPECT_EQ(shortest_of({0.3, 2e-3, 1e-3, 3e-3}, calls), 1e-3);  // a driver compiles in the first call
  EXPECT_EQ(shortest_of({2e-3, 60e-3, 1e-3}, calls), 1e-3);      // another process ran during the second
  EXPECT_EQ(calls, 9u);
  EXPECT_EQ(shortest_of({1e-6, 5e-3}, calls), 5e-3);
}

TEST(ShortestTime, RepeatsNothingOnASlowDevice) {
  size_t calls = 0;
  EXPECT_EQ(shortest_of({5, 4, 3}, calls), 4);
  EXPECT_EQ(calls, 2u);
}

}  // namespace
}  // namespace backplane::gpu
