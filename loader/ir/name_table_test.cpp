// SPDX-License-Identifier: Apache-2.0
#include "ir/name_table.h"

#include <gtest/gtest.h>

#include <string>

namespace backplane::model {
namespace {

TEST(NameTable, FindsWhatWasAddedAndNothingElse) {
  std::vector<std::string> names{""};
  for (uint32_t i = 1; i < 20'000; ++i) names.push_back("layer." + std::to_string(i * 7919 % 100'003));
  NameTable table;
  EXPECT_EQ(table.find("layer.0"), BP_NONE);
  for (uint32_t i = 0; i < names.size(); ++i) ASSERT_EQ(table.find_or_add(names[i], i), i);
  for (uint32_t i = 0; i < names.size(); ++i) {
    const std::string same = names[i];  // elsewhere in memory, NOLINT(performance-unnecessary-copy-initialization)
    ASSERT_EQ(table.find(same), i);
    ASSERT_EQ(table.find_or_add(same, BP_NONE - 1), i);
    ASSERT_EQ(table.find(same + "?"), BP_NONE);
  }
}

}  // namespace
}  // namespace backplane::model
