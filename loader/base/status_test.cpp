// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <cstring>

namespace backplane {
namespace {

TEST(PluginError, TextIsWhatThePluginWrote) {
  PluginError error;
  error.get()->text_size = std::string_view("no room").copy(error.get()->text, error.get()->text_capacity);
  EXPECT_EQ(error.text(), "no room");
}

TEST(PluginError, TooGreatASizeShowsNothingElse) {
  char before[sizeof(PluginError)];
  std::memset(before, 'H', sizeof before);
  PluginError* const error = new (before) PluginError;
  error->get()->text[0] = 'x';
  error->get()->text_size = uint64_t{1} << 62;
  EXPECT_EQ(error->text(), "x");
}

}  // namespace
}  // namespace backplane
