// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/counted.h"

namespace backplane {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Names, LongOnesLoseWholeCharactersAtTheirEnd) {
  EXPECT_EQ(shortened(repeated("名", 40)), repeated("名", 40));        // 120 bytes
  EXPECT_EQ(shortened(repeated("名", 50)), repeated("名", 40) + "…");  // cut between characters of 3 bytes
  EXPECT_EQ(shortened("a" + repeated("名", 50)), "a" + repeated("名", 39) + "…");
  EXPECT_EQ(shortened("ab" + repeated("名", 50)), "ab" + repeated("名", 39) + "…");
  EXPECT_EQ(shortened("abc" + repeated("😀", 50)), "abc" + repeated("😀", 29) + "…");  // characters of 4 bytes
  EXPECT_EQ(shortened(std::string(119, 'a') + "éa"), std::string(119, 'a') + "…");
  EXPECT_EQ(shortened(std::string(121, 'a')), std::string(120, 'a') + "…");
  EXPECT_EQ(shortened(std::string(200, '\x80')).size(), 117 + std::string_view("…").size());  // not UTF-8
}

TEST(Names, ControlCharactersAreShownAsQuestionMarks) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "'a?b?'");
}

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(counted(0, "input"), "0 inputs");
  EXPECT_EQ(counted(1, "input"), "1 input");
  EXPECT_EQ(counted(2, "input"), "2 inputs");
  EXPECT_EQ(counted(1, "axis", "axes"), "1 axis");
  EXPECT_EQ(counted(2, "axis", "axes"), "2 axes");
}

}  // namespace
}  // namespace backplane
