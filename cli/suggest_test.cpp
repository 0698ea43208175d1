// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <gtest/gtest.h>

namespace backplane::cli {
namespace {

TEST(Suggest, SuggestsWordsWithinTwoEdits) {
  const std::vector<std::string> words = {"certify", "compare", "list"};
  EXPECT_EQ(nearest("certify", words), "certify");
  EXPECT_EQ(nearest("lits", words), "list");
  EXPECT_EQ(nearest("certfiyy", words), "certify");
  EXPECT_EQ(nearest("liszzt", words), "list");
  EXPECT_EQ(nearest("lzzzist", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(100, 'l'), words), "");
}

TEST(Suggest, AsksOnlyForANearWord) {
  EXPECT_EQ(suggest("expain", {"run", "explain"}), " (did you mean 'explain'?)");
  EXPECT_EQ(suggest("frobnicate", {"run", "explain"}), "");
  EXPECT_EQ(suggest("run", {}), "");
}

}  // namespace
}  // namespace backplane::cli
