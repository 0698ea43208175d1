// SPDX-License-Identifier: Apache-2.0
#include "backplane/sdk/shape.hpp"

#include <gtest/gtest.h>

namespace backplane::sdk {
namespace {

TEST(Shapes, ThrowOnOverflow) {
  const int64_t large = int64_t{1} << 32;
  EXPECT_EQ(elements({2, 3, 4}), 24);
  EXPECT_EQ(elements(Shape{}), 1);
  EXPECT_EQ(elements({2, 3, 4}, 1, 3), 12);
  EXPECT_THROW(elements({large, large}), Error);
  EXPECT_THROW(elements({large, large, large}), Error);
  EXPECT_EQ(elements({large, large, 0}), 0);
  EXPECT_EQ(elements({0, large, large}), 0);
}

}  // namespace
}  // namespace backplane::sdk
