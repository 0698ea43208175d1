// SPDX-License-Identifier: Apache-2.0
#include "run/memory_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace backplane {
namespace {

TEST(MemoryPlan, BuffersThatMeetNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers(1 + random() % 60);
    uint64_t sum = 0;
    for (Lifetime& b : buffers) {
      b.bytes = random() % 1000;
      b.first = random() % 40;
      b.last = b.first + random() % 10;
      sum += (std::max<uint64_t>(b.bytes, 1) + 63) / 64 * 64;
    }
    const uint64_t total = plan_memory(buffers, 64);
    EXPECT_LE(total, sum);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Lifetime& a = buffers[i];
      EXPECT_EQ(a.offset % 64, 0u);
      EXPECT_LE(a.offset + a.bytes, total);
      for (size_t k = i + 1; k < buffers.size(); ++k) {
        const Lifetime& b = buffers[k];
        if (a.first <= b.last && b.first <= a.last && a.bytes && b.bytes) {
          EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
        }
      }
    }
  }
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> buffers;
  for (uint32_t i = 0; i < 100; ++i) buffers.push_back({1024, i, i + 1, 0});
  EXPECT_EQ(plan_memory(buffers, 64), 2048u);
}

TEST(MemoryPlan, ABlockBeyondTheAddressSpaceIsNotEmpty) {
  constexpr uint64_t kEach = (uint64_t{1} << 61) - 4;  // eight of them wrap around to 0
  std::vector<Lifetime> buffers(8, {kEach, 0, 1, 0});
  EXPECT_EQ(plan_memory(buffers, 64), UINT64_MAX);
  buffers.push_back({64, 2, 3, 0});
  EXPECT_EQ(plan_memory(buffers, 64), UINT64_MAX);
}

}  // namespace
}  // namespace backplane
