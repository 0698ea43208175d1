// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft, for which there are no conformance cases: numbers worked out by hand or by the formula.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

class Microsoft : public ::testing::Test {
 protected:
  Outcome run(GraphBuilder& builder, std::vector<HostTensor> inputs) {
    Compiled program(plugin, builder.graph());
    if (program.status != BP_OK) return {program.status, program.text, BP_NO_NODE, {}};
    return program.run(std::move(inputs));
  }
  Plugin plugin;
};

// Two columns of 16 weights in one block each. The first column is 0 … 15 with zero point 8 and scale 2, the second all
// 3 with zero point 1 and scale 0.5.
TEST_F(Microsoft, MatMulNBitsUnpacksLowNibblesFirst) {
  Bytes codes;
  for (int i = 0; i < 16; i += 2) codes.push_back(static_cast<uint8_t>(i | (i + 1) << 4));
  codes.insert(codes.end(), 8, 0x33);
  GraphBuilder b;
  b.input("a", BP_DTYPE_FLOAT, {2, 16});
  b.weight<uint8_t>("b", BP_DTYPE_UINT8, {2, 1, 8}, codes).weight<float>("scales", BP_DTYPE_FLOAT, {2}, {2, 0.5f});
  b.weight<uint8_t>("zeros", BP_DTYPE_UINT8, {2}, {8, 1});
  b.node("com.microsoft::MatMulNBits", 1, {"a", "b", "scales", "zeros"}, {"y"}, BP_DTYPE_FLOAT,
         {{"K", int64_t{16}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}});
  b.output("y");
  Floats a(32, 1.0f);
  std::fill_n(a.begin(), 16, 0.0f);
  a[3] = 1;  // picks weight 3 of each column
  Outcome outcome = run(b, {HostTensor::of(BP_DTYPE_FLOAT, {2, 16}, a)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(), ElementsAre((3 - 8) * 2, (3 - 1) * 0.5f, (120 - 16 * 8) * 2, 16));
}

// A token looks at the one before it and at itself; equal keys share the attention equally.
TEST_F(Microsoft, GroupQueryAttentionAppendsToTheCacheOfEachBatch) {
  GraphBuilder b;
  b.input("q", BP_DTYPE_FLOAT, {1, 1, 4}).input("k", BP_DTYPE_FLOAT, {1, 1, 2}).input("v", BP_DTYPE_FLOAT, {1, 1, 2});
  b.input("past_k", BP_DTYPE_FLOAT, {1, 1, 1, 2}).input("past_v", BP_DTYPE_FLOAT, {1, 1, 1, 2});
  b.weight<int32_t>("lengths", BP_DTYPE_INT32, {1}, {1}).weight<int32_t>("total", BP_DTYPE_INT32, {1}, {2});
  b.node("com.microsoft::GroupQueryAttention", 1, {"q", "k", "v", "past_k", "past_v", "lengths", "total"},
         {"y", "present_k", "present_v"}, BP_DTYPE_FLOAT, {{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}});
  b.output("y").output("present_v");
  const auto floats = [](std::vector<int64_t> extents, const Floats& data) {
    return HostTensor::of(BP_DTYPE_FLOAT, std::move(extents), data);
  };
  Outcome outcome = run(b, {floats({1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 2}, {5, 6}), floats({1, 1, 2}, {30, 40}),
                            floats({1, 1, 1, 2}, {5, 6}), floats({1, 1, 1, 2}, {10, 20})});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(), Pointwise(FloatNear(1e-5f), Floats{20, 30, 20, 30}));
  EXPECT_THAT(outcome.outputs[1].as<float>(), ElementsAre(10, 20, 30, 40));
}

// A cache that claims to be longer than it is must not be read.
TEST_F(Microsoft, GroupQueryAttentionRefusesLengthsBeyondTheCache) {
  GraphBuilder b;
  b.input("q", BP_DTYPE_FLOAT, {1, 1, 2}).input("k", BP_DTYPE_FLOAT, {1, 1, 2}).input("v", BP_DTYPE_FLOAT, {1, 1, 2});
  b.input("past_k", BP_DTYPE_FLOAT, {1, 1, 1, 2}).input("past_v", BP_DTYPE_FLOAT, {1, 1, 1, 2});
  b.input("lengths", BP_DTYPE_INT32, {1}).weight<int32_t>("total", BP_DTYPE_INT32, {1}, {9});
  b.node("com.microsoft::GroupQueryAttention", 1, {"q", "k", "v", "past_k", "past_v", "lengths", "total"}, {"y"},
         BP_DTYPE_FLOAT, {{"num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}});
  b.output("y");
  const auto pair = [](std::vector<int64_t> extents) {
    return HostTensor::of(BP_DTYPE_FLOAT, std::move(extents), Floats{1, 2});
  };
  for (int32_t length : {8, 1000000, -5}) {
    Outcome outcome = run(b, {pair({1, 1, 2}), pair({1, 1, 2}), pair({1, 1, 2}), pair({1, 1, 1, 2}), pair({1, 1, 1, 2}),
                              HostTensor::of<int32_t>(BP_DTYPE_INT32, {1}, {length})});
    EXPECT_NE(outcome.status, BP_OK);
    EXPECT_THAT(outcome.text, HasSubstr("seqlens_k"));
  }
}

// (x + skip) / sqrt(mean of squares) * gamma, and the sum beside it: the sum is (3, -3), so all squares are 9.
TEST_F(Microsoft, SkipSimplifiedLayerNormalizationGivesTheSum) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {1, 2}).input("skip", BP_DTYPE_FLOAT, {1, 2});
  b.weight<float>("gamma", BP_DTYPE_FLOAT, {2}, {2, 10});
  b.node("com.microsoft::SkipSimplifiedLayerNormalization", 1, {"x", "skip", "gamma"}, {"y", "", "", "sum"},
         BP_DTYPE_FLOAT, {{"epsilon", 0.0f}});
  b.output("y").output("sum");
  Outcome outcome = run(b, {HostTensor::of(BP_DTYPE_FLOAT, {1, 2}, Floats{1, -1}),
                            HostTensor::of(BP_DTYPE_FLOAT, {1, 2}, Floats{2, -2})});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(), Pointwise(FloatNear(1e-6f), Floats{2, -10}));
  EXPECT_THAT(outcome.outputs[1].as<float>(), ElementsAre(3, -3));
}

// (10 - 5) * 0.5 + (20 - 4) * 0.25 = 6.5, which is 16 steps of 0.4 above the zero point; 255 saturates.
TEST_F(Microsoft, QLinearAddRoundsAndSaturates) {
  GraphBuilder b;
  b.input("a", BP_DTYPE_UINT8, {2}).input("b", BP_DTYPE_UINT8, {1});
  b.weight<float>("half", BP_DTYPE_FLOAT, {}, {0.5f}).weight<float>("quarter", BP_DTYPE_FLOAT, {}, {0.25f});
  b.weight<float>("fine", BP_DTYPE_FLOAT, {}, {0.4f});
  b.weight<uint8_t>("five", BP_DTYPE_UINT8, {}, {5}).weight<uint8_t>("four", BP_DTYPE_UINT8, {}, {4});
  b.node("com.microsoft::QLinearAdd", 1, {"a", "half", "five", "b", "quarter", "four", "fine", "four"}, {"y"},
         BP_DTYPE_UINT8);
  b.output("y");
  Outcome outcome =
      run(b, {HostTensor::of(BP_DTYPE_UINT8, {2}, Bytes{10, 255}), HostTensor::of(BP_DTYPE_UINT8, {1}, Bytes{20})});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<uint8_t>(), ElementsAre(20, 255));
}

}  // namespace
}  // namespace backplane::cpu::testing
