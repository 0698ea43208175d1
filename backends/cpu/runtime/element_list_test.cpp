// SPDX-License-Identifier: Apache-2.0
#include "runtime/element_list.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace backplane::cpu {
namespace {

std::vector<int> content(const ElementList<int>& list) {
  return {list.begin(), list.end()};
}

TEST(ElementList, ChangesAnywhereAreThoseOfAVector) {
  std::mt19937 random(1);
  ElementList<int> list;
  std::vector<int> expected;
  for (int round = 0; round < 20'000; ++round) {
    const bool grows = round < 8000 || random() % 2 == 0;
    if (grows) {
      const size_t at = round % 3 == 0 ? expected.size() : random() % (expected.size() + 1);
      list.insert(at, round);
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), round);
    } else if (!expected.empty()) {
      const size_t at = random() % expected.size();
      list.erase(at);
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(list.size(), expected.size());
    if (!expected.empty()) {
      const size_t at = random() % expected.size();
      ASSERT_EQ(list[at], expected[at]);
    }
  }
  EXPECT_EQ(content(list), expected);
  while (!list.empty()) list.erase(list.size() / 2);
  EXPECT_EQ(list.begin(), list.end());
}

TEST(ElementList, CopiesDoNotChangeEachOther) {
  ElementList<int> list;
  for (int i = 0; i < 2000; ++i) list.push_back(i);
  const std::vector<int> before = content(list);
  ElementList<int> copy = list;
  copy.insert(700, -1);
  copy.erase(0);
  copy.push_back(-2);
  EXPECT_EQ(content(list), before);
  EXPECT_EQ(copy[699], -1);
  EXPECT_EQ(copy[copy.size() - 1], -2);
  EXPECT_EQ(copy.size(), 2001u);
}

}  // namespace
}  // namespace backplane::cpu
