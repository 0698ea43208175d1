// SPDX-License-Identifier: Apache-2.0
#include "cli/style.h"

#include <gtest/gtest.h>

#include "cli/progress.h"

namespace backplane::cli {
namespace {

TEST(Style, HeadingsAreBold) {
  EXPECT_EQ(emphasize("Devices\n  cpu\n\nran\n"), "\033[1mDevices\033[0m\n  cpu\n\nran\n");
  EXPECT_EQ(emphasize(""), "");
}

TEST(Style, FilesHaveNoColor) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(is_terminal(file));
  EXPECT_FALSE(has_color(file));
  std::fclose(file);
}

TEST(Progress, SaysHowMuchIsDone) {
  EXPECT_EQ(progress_text("runs", 500, 120, 3), "runs 120 of 500, 3 s");
  EXPECT_EQ(progress_text("measuring", 0, 0, 3), "measuring, 3 s");
}

}  // namespace
}  // namespace backplane::cli
