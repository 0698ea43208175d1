// SPDX-License-Identifier: Apache-2.0
#include "runtime/presence.h"

#include <gtest/gtest.h>

#include <thread>

namespace backplane::cpu {
namespace {

TEST(Presence, ARunIsAloneUntilAnotherComes) {
  std::this_thread::sleep_for(2 * Presence::kQuiet);  // tests that repeat find what they left
  const Presence first;
  EXPECT_TRUE(first.alone());
  EXPECT_FALSE(Presence::crowded());
  {
    const Presence second;
    EXPECT_TRUE(Presence::crowded());
    EXPECT_FALSE(second.alone());
    EXPECT_FALSE(first.alone());
  }
  EXPECT_FALSE(Presence::crowded());
  EXPECT_FALSE(first.alone()) << "the other may come again";
}

TEST(Presence, IsAloneAgainAfterAQuietTime) {
  {
    const Presence first;
    const Presence second;
  }
  EXPECT_FALSE(Presence().alone());
  std::this_thread::sleep_for(2 * Presence::kQuiet);
  EXPECT_TRUE(Presence().alone());
}

}  // namespace
}  // namespace backplane::cpu
