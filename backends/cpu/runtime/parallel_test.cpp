// SPDX-License-Identifier: Apache-2.0
#include "runtime/parallel.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/active_run.h"
#include "runtime/threads.h"

namespace backplane::cpu {
namespace {

TEST(Threads, HaveATeamByTheirPolicy) {
  const auto has_team = [](int count, ThreadsPolicy policy, uint32_t numa_nodes) {
    return Threads(count, policy, numa_nodes, INT64_MAX).team() != nullptr;
  };
  EXPECT_TRUE(has_team(2, ThreadsPolicy::kAuto, 1));
  EXPECT_FALSE(has_team(2, ThreadsPolicy::kAuto, 2));
  EXPECT_TRUE(has_team(2, ThreadsPolicy::kTeam, 2));
  EXPECT_FALSE(has_team(2, ThreadsPolicy::kArena, 1));
  EXPECT_FALSE(has_team(1, ThreadsPolicy::kTeam, 1));
}

// Kernels index scratch memory by thread_index(), and use the same part before and after a nested loop.
TEST(Parallel, AChunkThatWaitsForALoopOfItsOwnKeepsItsPlace) {
  using Clock = std::chrono::steady_clock;
  Threads threads(4, ThreadsPolicy::kAuto, 1, INT64_MAX);
  const ActiveRun other, mine;  // two runs at once use oneTBB's workers instead of a team
  const UseThreads use(threads);
  const UseActiveRun use_run(&mine);
  std::array<std::atomic<int>, 64> inside{};
  std::atomic<int> overwritten = 0;
  for (int round = 0; round < 20; ++round) {
    parallel(32, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        std::atomic<int>& place = inside.at(static_cast<size_t>(thread_index()));
        overwritten += place.exchange(1);
        parallel(16, 1, [](int64_t, int64_t) {
          const auto until = Clock::now() + std::chrono::microseconds(20);
          while (Clock::now() < until) {
          }
        });
        place = 0;
      }
    });
  }
  EXPECT_EQ(overwritten, 0);
}

}  // namespace
}  // namespace backplane::cpu
