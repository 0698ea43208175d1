// SPDX-License-Identifier: Apache-2.0
#include "import/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/testing.h"
#include "ir/tensor.h"

namespace backplane::model {
namespace {

using namespace import_test;

TEST(Builder, RefusesWeightsWhoseBytesExceed64Bits) {
  auto builder = Builder::create({{"", 17}});
  ASSERT_TRUE(builder.ok());
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{1ll << 60}, {1ll << 30, 1ll << 30}}) {
    const auto added = (*builder)->add_weight("w", BP_DTYPE_COMPLEX128, extents, nullptr, 0);
    EXPECT_EQ(added.status().code(), BP_INVALID_ARGUMENT) << added.status().text();
  }
  EXPECT_EQ(tensor_bytes(BP_DTYPE_COMPLEX128, std::vector<int64_t>{1ll << 59}), uint64_t{1} << 63);
  EXPECT_EQ(tensor_bytes(BP_DTYPE_COMPLEX128, std::vector<int64_t>{1ll << 60}), std::nullopt);
}

TEST(Builder, NeedsTheOpsetOfAiOnnx) {
  EXPECT_EQ(Builder::create({}).status().text(), "the opset of ai.onnx (domain \"\") is missing");
  EXPECT_EQ(Builder::create({{"ai.onnx.ml", 5}}).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_TRUE(Builder::create({{"ai.onnx", 21}}).ok());
}

}  // namespace
}  // namespace backplane::model
