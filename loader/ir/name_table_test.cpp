// SPDX-License-Identifier: Apache-2.0
#include "ir/name_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace backplane::model {
namespace {

TEST(NameTable, FindsOnlyWhatWasAdded) {
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

// The random key spreads names that std::hash would put into one slot.
TEST(NameTable, SlotsDependOnARandomKey) {
  constexpr size_t kSlots = 1024;
  std::vector<bool> taken(kSlots);
  size_t names = 0, distinct = 0;
  for (uint32_t i = 0; names < 1000; ++i) {
    const std::string name = "n" + std::to_string(i);
    if (std::hash<std::string>{}(name) % kSlots != 0) continue;
    ++names;
    const size_t slot = keyed_hash(name) % kSlots;
    distinct += !taken[slot];
    taken[slot] = true;
  }
  EXPECT_GT(distinct, 500u);
}

}  // namespace
}  // namespace backplane::model
