// SPDX-License-Identifier: Apache-2.0
#include "runtime/active_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace backplane::cpu {
namespace {

TEST(ActiveRun, ARunIsAloneUntilAnotherComes) {
  std::this_thread::sleep_for(2 * ActiveRun::kQuiet);  // lets overlaps of a previous repetition of this test expire
  const ActiveRun first;
  EXPECT_TRUE(first.alone());
  EXPECT_FALSE(ActiveRun::several());
  {
    const ActiveRun second;
    EXPECT_TRUE(ActiveRun::several());
    EXPECT_FALSE(second.alone());
    EXPECT_FALSE(first.alone());
  }
  EXPECT_FALSE(ActiveRun::several());
  EXPECT_FALSE(first.alone()) << "after an overlap, a run does not become alone again";
}

// Whether a run is alone that begins within the quiet time after an overlap of this length. A busy machine may let that
// time pass before the run begins, and then the overlap is repeated.
bool is_alone_after_overlap(std::chrono::milliseconds length) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 100; ++i) {
    Clock::time_point before_end;
    {
      const ActiveRun first;
      const ActiveRun second;
      std::this_thread::sleep_for(length);
      before_end = Clock::now();
    }
    const bool is_alone = ActiveRun().alone();
    if (!is_alone || Clock::now() - before_end <= ActiveRun::kQuiet) return is_alone;
  }
  return true;
}

TEST(ActiveRun, IsAloneAgainAfterAQuietTime) {
  EXPECT_FALSE(is_alone_after_overlap({}));
  std::this_thread::sleep_for(2 * ActiveRun::kQuiet);
  EXPECT_TRUE(ActiveRun().alone());
}

TEST(ActiveRun, TheQuietTimeBeginsWhenAnOverlapEnds) {
  EXPECT_FALSE(is_alone_after_overlap(2 * ActiveRun::kQuiet));
}

}  // namespace
}  // namespace backplane::cpu
