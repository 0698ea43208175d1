// SPDX-License-Identifier: Apache-2.0
#include "runtime/active_run.h"

#include <gtest/gtest.h>

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

TEST(ActiveRun, IsAloneAgainAfterAQuietTime) {
  {
    const ActiveRun first;
    const ActiveRun second;
  }
  EXPECT_FALSE(ActiveRun().alone());
  std::this_thread::sleep_for(2 * ActiveRun::kQuiet);
  EXPECT_TRUE(ActiveRun().alone());
}

TEST(ActiveRun, TheQuietTimeBeginsWhenAnOverlapEnds) {
  {
    const ActiveRun first;
    const ActiveRun second;
    std::this_thread::sleep_for(2 * ActiveRun::kQuiet);
  }
  EXPECT_FALSE(ActiveRun().alone());
}

}  // namespace
}  // namespace backplane::cpu
