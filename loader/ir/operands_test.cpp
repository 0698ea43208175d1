// SPDX-License-Identifier: Apache-2.0
#include "ir/operands.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backplane/types.h"

namespace backplane::model {
namespace {

// Inline and heap sizes: vectors with the same values compare equal regardless of how they were built.
TEST(Operands, AreAVectorOfAnyLength) {
  for (const size_t count : {0, 1, 4, 5, 100}) {
    std::vector<ValueId> wanted(count);
    std::iota(wanted.begin(), wanted.end(), 7);
    const Operands given(wanted);
    Operands grown, copied, shorter(wanted);
    for (const ValueId value : wanted) grown.push_back(value);
    copied = given;
    copied = *&copied;
    Operands moved = std::move(copied);
    EXPECT_TRUE(copied.empty());  // NOLINT(bugprone-use-after-move): a moved-from vector is empty by contract
    copied = Operands(std::vector<ValueId>(9, 1));
    copied = std::move(moved);
    for (const Operands& same : {given, grown, copied}) {
      EXPECT_EQ(same, given);
      EXPECT_TRUE(std::ranges::equal(same, wanted));
    }
    if (count == 0) continue;
    shorter.erase(shorter.begin());
    shorter.resize(count + 3, BP_NONE);
    std::vector<ValueId> cut(wanted.begin() + 1, wanted.end());
    cut.resize(count + 3, BP_NONE);
    EXPECT_TRUE(std::ranges::equal(shorter, cut));
    EXPECT_NE(shorter, given);
    shorter.pop_back();
    EXPECT_EQ(shorter.size(), count + 2);
    EXPECT_TRUE(std::ranges::equal(given, wanted));
  }
}

}  // namespace
}  // namespace backplane::model
