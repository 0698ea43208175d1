// SPDX-License-Identifier: Apache-2.0
#include "sandbox/progress.h"

#include <gtest/gtest.h>

namespace backplane::conform {
namespace {

TEST(Progress, ShowsWhatIsLeft) {
  EXPECT_EQ(progress_line(25, 100, 0, 30), "[#######.......................] 25/100  25%  1:30 left");
  EXPECT_EQ(progress_line(99, 100, 3, 99), "[#############################.] 99/100  99%  3 bad  0:01 left");
  EXPECT_EQ(progress_line(100, 100, 0, 99), "[##############################] 100/100 100%");
  EXPECT_EQ(progress_line(0, 100, 0, 0), "[..............................] 0/100   0%");
}

}  // namespace
}  // namespace backplane::conform
