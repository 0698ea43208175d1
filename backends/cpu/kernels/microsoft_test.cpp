// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft. The conformance cases cover only some of them. The expected numbers are computed by hand
// or from the formula, or are results of ONNX Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/common/float16.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

class Microsoft : public ::testing::Test {
 protected:
  Outcome run(GraphBuilder& builder, std::vector<HostTensor> inputs) {
    Compiled program(plugin, builder.graph());
    if (program.status != BP_OK) return {program.status, program.text, BP_NO_NODE, {}};
    return program.run(std::move(inputs));
  }
  Plugin plugin;
};

// Two columns of 16 weights, each a single block. The first column is 0 … 15 with zero point 8 and scale 2. All weights
// of the second are 3, with zero point 1 and scale 0.5.
TEST_F(Microsoft, MatMulNBitsUnpacksLowNibblesFirst) {
  Bytes packed;
  for (int i = 0; i < 16; i += 2) packed.push_back(static_cast<uint8_t>(i | (i + 1) << 4));
  packed.insert(packed.end(), 8, 0x33);
  GraphBuilder b;
  b.input("a", BP_DTYPE_FLOAT, {2, 16});
  b.weight<uint8_t>("b", BP_DTYPE_UINT8, {2, 1, 8}, packed).weight<float>("scales", BP_DTYPE_FLOAT, {2}, {2, 0.5f});
  b.weight<uint8_t>("zeros", BP_DTYPE_UINT8, {2}, {8, 1});
  b.node("com.microsoft::MatMulNBits", 1, {"a", "b", "scales", "zeros"}, {"y"}, BP_DTYPE_FLOAT,
         {{"K", int64_t{16}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}});
  b.output("y");
  Floats a(32, 1.0f);
  std::fill_n(a.begin(), 16, 0.0f);
  a[3] = 1;  // row 0 of `a` selects weight 3 of each column
  Outcome outcome = run(b, {HostTensor::of(BP_DTYPE_FLOAT, {2, 16}, a)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(), ElementsAre((3 - 8) * 2, (3 - 1) * 0.5f, (120 - 16 * 8) * 2, 16));
}

// The token attends to the past one and to itself. Their keys are equal, so both get the same attention.
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

// The sequences have different lengths, and the cache has room for more positions. For each type of cache: the new
// token of each sequence is written after its past ones, the positions after it are 0, and attention has the same
// results as for FLOAT.
TEST_F(Microsoft, GroupQueryAttentionKeepsCachesOfEachType) {
  constexpr int64_t kBatch = 2, kRoom = 6, kHeads = 4, kKvHeads = 2, kSize = 8;
  const std::vector<int64_t> cache = {kBatch, kKvHeads, kRoom, kSize}, token = {kBatch, 1, kKvHeads * kSize};
  const auto numbers = [](int64_t count, uint32_t seed) {
    Floats values;
    for (int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      values.push_back(static_cast<float>(seed >> 26) / 32.0f - 1);  // exact in FLOAT16 and BFLOAT16
    }
    return values;
  };
  const auto outputs = [&](bp_dtype_t dtype) {
    const auto tensor = [&](const std::vector<int64_t>& extents, uint32_t seed) {
      int64_t count = 1;
      for (int64_t extent : extents) count *= extent;
      const Floats values = numbers(count, seed);
      if (dtype == BP_DTYPE_FLOAT) return HostTensor::of(dtype, extents, values);
      std::vector<uint16_t> bits;
      for (float v : values) bits.push_back(dtype == BP_DTYPE_FLOAT16 ? Half(v).bits : BFloat16(v).bits);
      return HostTensor::of(dtype, extents, bits);
    };
    GraphBuilder b;
    b.input("q", dtype, {kBatch, 1, kHeads * kSize}).input("k", dtype, token).input("v", dtype, token);
    b.input("past_k", dtype, cache).input("past_v", dtype, cache);
    b.weight<int32_t>("lengths", BP_DTYPE_INT32, {kBatch}, {4, 2}).weight<int32_t>("total", BP_DTYPE_INT32, {1}, {5});
    b.node("com.microsoft::GroupQueryAttention", 1, {"q", "k", "v", "past_k", "past_v", "lengths", "total"},
           {"y", "present_k", "present_v"}, dtype, {{"num_heads", kHeads}, {"kv_num_heads", kKvHeads}});
    b.output("y").output("present_k").output("present_v");
    Outcome outcome = run(b, {tensor({kBatch, 1, kHeads * kSize}, 1), tensor(token, 2), tensor(token, 3),
                              tensor(cache, 4), tensor(cache, 5)});
    EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
    std::vector<Floats> results;
    for (const HostTensor& output : outcome.outputs) {
      Floats values;
      if (dtype == BP_DTYPE_FLOAT) {
        values = output.as<float>();
      } else {
        for (uint16_t bits : output.as<uint16_t>())
          values.push_back(dtype == BP_DTYPE_FLOAT16 ? half_to_float(bits)
                                                     : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
      }
      results.push_back(std::move(values));
    }
    return results;
  };
  const std::vector<Floats> expected = outputs(BP_DTYPE_FLOAT);
  ASSERT_EQ(expected.size(), 3u);
  for (size_t which : {1, 2}) {
    const Floats past = numbers(kBatch * kKvHeads * kRoom * kSize, which == 1 ? 4 : 5);
    const Floats fresh = numbers(kBatch * kKvHeads * kSize, which == 1 ? 2 : 3);
    for (int64_t i = 0; i < kBatch * kKvHeads * kRoom * kSize; ++i) {
      const int64_t head = i / (kRoom * kSize), position = i / kSize % kRoom, end = head / kKvHeads == 0 ? 4 : 2;
      const float wanted = position < end    ? past[static_cast<size_t>(i)]
                           : position == end ? fresh[static_cast<size_t>(head * kSize + i % kSize)]
                                             : 0;
      ASSERT_EQ(expected[which][static_cast<size_t>(i)], wanted) << "output " << which << " [" << i << "]";
    }
  }
  for (bp_dtype_t dtype : {BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}) {
    const std::vector<Floats> seen = outputs(dtype);
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_THAT(seen[0], Pointwise(FloatNear(dtype == BP_DTYPE_FLOAT16 ? 0x1p-11f : 0x1p-8f), expected[0]));
    EXPECT_EQ(seen[1], expected[1]);
    EXPECT_EQ(seen[2], expected[2]);
  }
}

// Sequence lengths that exceed the cache are refused before it is read.
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

// y = sum / sqrt(mean of sum²) * gamma. The other output is sum = x + skip = (3, -3), so the mean of its squares is 9.
TEST_F(Microsoft, SkipSimplifiedLayerNormalizationAlsoReturnsTheSum) {
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

// (10 - 5) * 0.5 + (20 - 4) * 0.25 = 6.5, which rounds to 16 steps of 0.4; added to the zero point 4, that is 20. The
// second sum saturates.
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

// Returns multiples of 1/4 between -1.5 and 1.5.
Floats quarters(size_t count, size_t seed) {
  Floats values;
  for (size_t i = 0; i < count; ++i) values.push_back((static_cast<float>((i * 7 + seed * 5) % 13) - 6) / 4);
  return values;
}
HostTensor quarters_of(const std::vector<int64_t>& extents, size_t seed) {
  size_t count = 1;
  for (int64_t extent : extents) count *= static_cast<size_t>(extent);
  return HostTensor::of(BP_DTYPE_FLOAT, extents, quarters(count, seed));
}

// Expected numbers in the rest of this file are results of ONNX Runtime 1.31.1.
TEST_F(Microsoft, MultiHeadAttentionTakesBiasMaskAndCache) {
  GraphBuilder b;
  for (const char* name : {"q", "k", "v"}) b.input(name, BP_DTYPE_FLOAT, {1, 2, 4});
  for (const char* name : {"past_k", "past_v"}) b.input(name, BP_DTYPE_FLOAT, {1, 2, 1, 2});
  b.weight<float>("bias", BP_DTYPE_FLOAT, {12}, quarters(12, 3))
      .weight<int32_t>("mask", BP_DTYPE_INT32, {1, 3}, {1, 1, 0});
  b.weight<float>("add", BP_DTYPE_FLOAT, {1, 2, 2, 3}, quarters(12, 4));
  b.node("com.microsoft::MultiHeadAttention", 1, {"q", "k", "v", "bias", "mask", "add", "past_k", "past_v"},
         {"y", "present_k", "present_v"}, BP_DTYPE_FLOAT, {{"num_heads", int64_t{2}}});
  b.output("y").output("present_k").output("present_v");
  const Outcome outcome = run(b, {quarters_of({1, 2, 4}, 0), quarters_of({1, 2, 4}, 1), quarters_of({1, 2, 4}, 2),
                                  quarters_of({1, 2, 1, 2}, 5), quarters_of({1, 2, 1, 2}, 6)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(),
              Pointwise(FloatNear(1e-5f), Floats{0.9821988f, -1.961431f, -0.2003182f, 1.414831f, 0.999415f, -1.998732f,
                                                 0.6558841f, -0.05294409f}));
  EXPECT_THAT(outcome.outputs[1].as<float>(),
              ElementsAre(1.5, 0, -0.75, 2.75, -0.25, 0, -1.5, 0.25, -0.25, 0, 0.25, 0.5));
  EXPECT_THAT(outcome.outputs[2].as<float>(),
              ElementsAre(-0.5, 1.25, 1, -2, 1.5, -1.5, -0.25, 1.5, 1.5, -1.5, -1.25, -1));
}

// In cross-attention, keys and values may be given as [batch, head, position, size]; the bias is not added to them.
TEST_F(Microsoft, MultiHeadAttentionTakesKeysByHeads) {
  GraphBuilder b;
  b.input("q", BP_DTYPE_FLOAT, {1, 2, 4})
      .input("k", BP_DTYPE_FLOAT, {1, 2, 3, 2})
      .input("v", BP_DTYPE_FLOAT, {1, 2, 3, 2});
  b.weight<float>("bias", BP_DTYPE_FLOAT, {12}, quarters(12, 3));
  b.node("com.microsoft::MultiHeadAttention", 1, {"q", "k", "v", "bias"}, {"y"}, BP_DTYPE_FLOAT,
         {{"num_heads", int64_t{2}}, {"scale", 0.5f}});
  b.output("y");
  const Outcome outcome =
      run(b, {quarters_of({1, 2, 4}, 0), quarters_of({1, 2, 3, 2}, 1), quarters_of({1, 2, 3, 2}, 2)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(),
              Pointwise(FloatNear(1e-5f), Floats{1.083537f, -0.4164634f, -1.26041f, 0.4895902f, 1.050964f, -0.4490362f,
                                                 -1.23959f, 0.51041f}));
}

TEST_F(Microsoft, AttentionIsCausalBehindItsCache) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2, 2, 3}).input("past", BP_DTYPE_FLOAT, {2, 2, 2, 1, 2});
  b.weight<float>("w", BP_DTYPE_FLOAT, {3, 12}, quarters(36, 1))
      .weight<float>("bias", BP_DTYPE_FLOAT, {12}, quarters(12, 2));
  b.weight<int32_t>("mask", BP_DTYPE_INT32, {2, 3}, {1, 1, 1, 0, 1, 1});
  b.node("com.microsoft::Attention", 1, {"x", "w", "bias", "mask", "past"}, {"y", "present"}, BP_DTYPE_FLOAT,
         {{"num_heads", int64_t{2}}, {"unidirectional", int64_t{1}}});
  b.output("y").output("present");
  const Outcome outcome = run(b, {quarters_of({2, 2, 3}, 0), quarters_of({2, 2, 2, 1, 2}, 4)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(),
              Pointwise(FloatNear(1e-5f), Floats{1.249998f, -0.2499988f, 1.426604f, 0.03848813f, -3.213253f, 3.034168f,
                                                 -2.066976f, 1.634167f, -3.0625f, 2.3125f, -2.875f, 2.5f, -3.062498f,
                                                 2.312497f, 0.02018758f, 0.05336264f}));
  const Floats present = outcome.outputs[1].as<float>();
  ASSERT_EQ(present.size(), 48u);
  EXPECT_THAT(Floats(present.begin(), present.begin() + 6), ElementsAre(0.25, -1.25, 0.75, 3.8125, 3.125, -2));
  EXPECT_THAT(Floats(present.end() - 6, present.end()), ElementsAre(-1.25, 0.5, -2.875, 2.5, 1.5625, -1.25));
}

TEST_F(Microsoft, AttentionTakesALengthForEachBatch) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2, 2, 3});
  b.weight<float>("w", BP_DTYPE_FLOAT, {3, 12}, quarters(36, 1))
      .weight<float>("bias", BP_DTYPE_FLOAT, {12}, quarters(12, 2));
  b.weight<int32_t>("mask", BP_DTYPE_INT32, {2}, {2, 1});
  b.node("com.microsoft::Attention", 1, {"x", "w", "bias", "mask"}, {"y"}, BP_DTYPE_FLOAT, {{"num_heads", int64_t{2}}});
  b.output("y");
  const Outcome outcome = run(b, {quarters_of({2, 2, 3}, 0)});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(),
              Pointwise(FloatNear(1e-5f),
                        Floats{0.5f, -1.375f, 0.7098075f, -0.9757176f, -3.247111f, 3.059081f, -2.747475f, 1.945929f,
                               -3.0625f, 2.3125f, -2.875f, 2.5f, -3.0625f, 2.3125f, -2.875f, 2.5f}));
}

// An id that has no row in its embedding is an error that names the id's position, whichever input the id is from.
TEST_F(Microsoft, EmbedLayerNormalizationRefusesIdsBeyondTheEmbeddings) {
  const auto with = [&](std::vector<int32_t> words, std::vector<int32_t> segments, std::vector<int32_t> positions) {
    GraphBuilder b;
    b.input("words", BP_DTYPE_INT32, {1, 3}).input("segments", BP_DTYPE_INT32, {1, 3});
    b.input("positions", BP_DTYPE_INT32, {1, 3});
    b.weight<float>("word", BP_DTYPE_FLOAT, {5, 2}, quarters(10, 1));
    b.weight<float>("position", BP_DTYPE_FLOAT, {4, 2}, quarters(8, 2));
    b.weight<float>("segment", BP_DTYPE_FLOAT, {2, 2}, quarters(4, 3));
    b.weight<float>("gamma", BP_DTYPE_FLOAT, {2}, {1, 2}).weight<float>("beta", BP_DTYPE_FLOAT, {2}, {0, 1});
    b.node("com.microsoft::EmbedLayerNormalization", 1,
           {"words", "segments", "word", "position", "segment", "gamma", "beta", "", "positions"}, {"y"});
    b.output("y");
    return run(b, {HostTensor::of(BP_DTYPE_INT32, {1, 3}, words), HostTensor::of(BP_DTYPE_INT32, {1, 3}, segments),
                   HostTensor::of(BP_DTYPE_INT32, {1, 3}, positions)});
  };
  const Outcome outcome = with({4, 0, 2}, {1, 0, 1}, {3, 2, 0});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<float>(),
              Each(AnyOf(FloatNear(1, 1e-3f), FloatNear(-1, 1e-3f), FloatNear(3, 1e-3f))));
  EXPECT_THAT(with({4, 5, 2}, {1, 0, 1}, {3, 2, 0}).text, HasSubstr("input_ids of batch 0, position 1 is 5"));
  EXPECT_THAT(with({4, 0, 2}, {1, 0, -1}, {3, 2, 0}).text, HasSubstr("segment_ids of batch 0, position 2 is -1"));
  EXPECT_THAT(with({4, 0, 2}, {1, 0, 1}, {4, 2, 0}).text, HasSubstr("position_ids of batch 0, position 0 is 4"));
}

// Nodes that no input can make valid are refused during compilation, with the reason.
TEST_F(Microsoft, MalformedAttributesAreRefused) {
  const auto refusal = [&](const char* op, const std::vector<std::string>& inputs, const Attributes& attributes) {
    GraphBuilder b;
    b.input("ids", BP_DTYPE_INT32, {1, 3}).input("table", BP_DTYPE_FLOAT, {4, 8}).input("row", BP_DTYPE_FLOAT, {8});
    b.input("image", BP_DTYPE_FLOAT, {1, 6, 6, 4}).input("kernel", BP_DTYPE_FLOAT, {8, 3, 3, 4});
    b.input("x", BP_DTYPE_UINT8, {1, 3, 4}).input("w", BP_DTYPE_INT8, {4, 12}).input("scale", BP_DTYPE_FLOAT, {});
    b.input("zero", BP_DTYPE_UINT8, {}).input("bias", BP_DTYPE_FLOAT, {12});
    b.node(std::string("com.microsoft::") + op, 1, inputs, {"y"}, BP_DTYPE_FLOAT, attributes).output("y");
    return Compiled(plugin, b.graph()).text;
  };
  const std::vector<std::string> embedding = {"ids", "", "table", "table", "", "row", "row"};
  EXPECT_EQ(refusal("EmbedLayerNormalization", embedding, {}), "");
  EXPECT_THAT(refusal("EmbedLayerNormalization", embedding, {{"epsilon", -1.0f}}), HasSubstr("epsilon is -1"));
  EXPECT_THAT(refusal("EmbedLayerNormalization", {"ids", "ids", "table", "table", "", "row", "row"}, {}),
              HasSubstr("segment_ids has no segment_embedding"));
  EXPECT_THAT(refusal("EmbedLayerNormalization", {"ids", "", "table", "table", "", "row"}, {}),
              HasSubstr("input 6 is missing"));
  const std::vector<std::string> attention = {"x", "w", "bias", "scale", "scale"};
  const Attributes heads = {{"num_heads", int64_t{2}}};
  EXPECT_EQ(refusal("QAttention", attention, heads), "");
  EXPECT_THAT(refusal("QAttention", attention, {}), HasSubstr("num_heads is missing"));
  EXPECT_THAT(refusal("QAttention", attention, {{"num_heads", int64_t{2}}, {"do_rotary", int64_t{1}}}),
              HasSubstr("do_rotary is not supported"));
  EXPECT_THAT(refusal("QAttention", attention, {{"num_heads", int64_t{2}}, {"qkv_hidden_sizes", Ints{4}}}),
              HasSubstr("qkv_hidden_sizes has 1"));
  EXPECT_NE(refusal("QAttention", {"x", "w", "", "scale", "scale"}, heads), "");
  EXPECT_NE(refusal("QAttention", {"x", "w", "bias", "scale", "scale", "", "", "zero"}, heads), "");
  const std::vector<std::string> convolution = {"image", "kernel"};
  EXPECT_EQ(refusal("NhwcConv", convolution, {}), "");
  EXPECT_THAT(refusal("NhwcConv", convolution, {{"group", int64_t{0}}}), HasSubstr("group is 0"));
  EXPECT_THAT(refusal("NhwcConv", convolution, {{"kernel_shape", Ints{3, 5}}}), HasSubstr("kernel_shape has 5"));
  EXPECT_THAT(refusal("NhwcConv", convolution, {{"strides", Ints{1, 0}}}), HasSubstr("strides contains 0"));
  EXPECT_THAT(refusal("NhwcConv", convolution, {{"pads", Ints{1, 1}}}), HasSubstr("pads has 2"));
}

// A run with operands whose extents do not fit fails with an error that names the operand.
TEST_F(Microsoft, QAttentionRefusesOperandsThatDoNotFit) {
  struct Operands {
    std::vector<int64_t> weights{6, 24}, bias{24}, x_scale{}, w_scale{24}, mask{2, 3}, w_zero{}, past{2, 2, 2, 0, 4};
    int64_t heads = 2;
  };
  const auto error = [&](const Operands& o) {
    GraphBuilder b;
    std::vector<HostTensor> inputs;
    const auto add = [&](const char* name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
      b.input(name, dtype, std::vector<int64_t>(extents.size(), -1));
      int64_t count = 1;
      for (int64_t extent : extents) count *= extent;
      const size_t bytes = dtype == BP_DTYPE_UINT8 || dtype == BP_DTYPE_INT8 ? 1 : 4;
      inputs.push_back({dtype, extents, std::string(static_cast<size_t>(count) * bytes, '\0')});
    };
    add("x", BP_DTYPE_UINT8, {2, 3, 6});
    add("w", BP_DTYPE_INT8, o.weights);
    add("bias", BP_DTYPE_FLOAT, o.bias);
    add("x_scale", BP_DTYPE_FLOAT, o.x_scale);
    add("w_scale", BP_DTYPE_FLOAT, o.w_scale);
    add("mask", BP_DTYPE_INT32, o.mask);
    add("w_zero", BP_DTYPE_INT8, o.w_zero);
    add("past", BP_DTYPE_FLOAT, o.past);
    b.node("com.microsoft::QAttention", 1, {"x", "w", "bias", "x_scale", "w_scale", "mask", "", "w_zero", "past"},
           {"y"}, BP_DTYPE_FLOAT, {{"num_heads", o.heads}});
    b.output("y");
    return run(b, inputs).text;
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({.weights = {5, 24}}), HasSubstr("weights"));
  EXPECT_THAT(error({.weights = {6, 25}}), HasSubstr("num_heads"));
  EXPECT_THAT(error({.heads = 3}), HasSubstr("num_heads"));
  EXPECT_THAT(error({.bias = {23}}), HasSubstr("bias"));
  EXPECT_THAT(error({.x_scale = {2}}), HasSubstr("input 3"));
  EXPECT_THAT(error({.w_scale = {8}}), HasSubstr("input 4"));
  EXPECT_THAT(error({.w_zero = {3}}), HasSubstr("input 7"));
  EXPECT_THAT(error({.mask = {2, 4}}), HasSubstr("mask_index"));
  EXPECT_THAT(error({.mask = {2, 1, 3, 3}}), HasSubstr("mask_index"));
  EXPECT_THAT(error({.past = {2, 2, 2, 1, 3}}), HasSubstr("past"));
}

// An LSTM of one sequence, two inputs and one unit, whose operands a test may replace.
struct QuantizedLstm {
  std::vector<int64_t> w{1, 2, 4}, r{1, 1, 4}, scale{1}, zero{1}, first{1, 1, 1};
  std::vector<int32_t> lengths{3};
  Attributes attributes{};

  GraphBuilder builder() const {
    GraphBuilder b;
    const auto add = [&](const char* name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
      b.input(name, dtype, std::vector<int64_t>(extents.size(), -1));
    };
    add("x", BP_DTYPE_FLOAT, {3, 1, 2});
    add("w", BP_DTYPE_INT8, w);
    add("r", BP_DTYPE_INT8, r);
    add("lengths", BP_DTYPE_INT32, {1});
    add("first", BP_DTYPE_FLOAT, first);
    add("scale", BP_DTYPE_FLOAT, scale);
    add("zero", BP_DTYPE_INT8, zero);
    b.node("com.microsoft::DynamicQuantizeLSTM", 1,
           {"x", "w", "r", "", "lengths", "first", "", "", "scale", "zero", "scale", "zero"}, {"y"}, BP_DTYPE_FLOAT,
           attributes);
    b.output("y");
    return b;
  }
  std::vector<HostTensor> inputs() const {
    const auto bytes = [](const std::vector<int64_t>& extents) {
      size_t count = 1;
      for (int64_t extent : extents) count *= static_cast<size_t>(extent);
      return HostTensor::of(BP_DTYPE_INT8, extents, std::vector<int8_t>(count, 3));
    };
    return {HostTensor::of(BP_DTYPE_FLOAT, {3, 1, 2}, Floats(6, 0.5f)),
            bytes(w),
            bytes(r),
            HostTensor::of(BP_DTYPE_INT32, {1}, lengths),
            HostTensor{BP_DTYPE_FLOAT, first, std::string(4, '\0')},
            HostTensor{BP_DTYPE_FLOAT, scale, std::string(scale == std::vector<int64_t>{1} ? 4 : 8, '\0')},
            bytes(zero)};
  }
};

TEST_F(Microsoft, DynamicQuantizeLSTMRefusesOperandsThatDoNotFit) {
  const auto error = [&](const QuantizedLstm& lstm) {
    GraphBuilder b = lstm.builder();
    return run(b, lstm.inputs()).text;
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({.w = {1, 3, 4}}), HasSubstr("input 1 has shape [1,3,4], but needs [1,2,4]"));
  EXPECT_THAT(error({.r = {1, 1, 8}}), HasSubstr("input 2"));
  EXPECT_THAT(error({.r = {2, 1, 4}}), HasSubstr("input 2"));
  EXPECT_THAT(error({.scale = {2}}), HasSubstr("input 8"));
  EXPECT_THAT(error({.zero = {1, 3}}), HasSubstr("input 9"));
  EXPECT_THAT(error({.first = {1, 1}}), HasSubstr("input 5"));
  EXPECT_THAT(error({.lengths = {4}}), HasSubstr("sequence length 4 is not in [0, 3]"));
  EXPECT_THAT(error({.lengths = {-1}}), HasSubstr("sequence length -1"));
  EXPECT_THAT(error({.attributes = {{"direction", "sideways"}}}), HasSubstr("direction"));
  EXPECT_THAT(error({.attributes = {{"hidden_size", int64_t{2}}}}), HasSubstr("input 1"));
}

// The time steps are computed in groups that fit in the cache; results must not depend on where a group ends.
TEST_F(Microsoft, DynamicQuantizeLSTMOfManySteps) {
  constexpr int64_t kSteps = 300, kUnits = 70;
  const auto outcome = [&](const char* reference) {
    setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
    Plugin own("2");
    setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
    std::vector<int8_t> w(2 * 3 * 4 * kUnits), r(2 * kUnits * 4 * kUnits);
    uint32_t seed = 7;
    for (auto* weights : {&w, &r})
      for (int8_t& one : *weights) one = static_cast<int8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {kSteps, 3, 3}).input("lengths", BP_DTYPE_INT32, {3});
    b.weight<int8_t>("w", BP_DTYPE_INT8, {2, 3, 4 * kUnits}, w);
    b.weight<int8_t>("r", BP_DTYPE_INT8, {2, kUnits, 4 * kUnits}, r);
    b.weight<float>("scale", BP_DTYPE_FLOAT, {2}, {0.002f, 0.003f}).weight<int8_t>("zero", BP_DTYPE_INT8, {2}, {0, 5});
    b.node("com.microsoft::DynamicQuantizeLSTM", 1,
           {"x", "w", "r", "", "lengths", "", "", "", "scale", "zero", "scale", "zero"}, {"y"}, BP_DTYPE_FLOAT,
           {{"direction", "bidirectional"}, {"hidden_size", kUnits}});
    b.output("y");
    Compiled program(own, b.graph());
    EXPECT_EQ(program.status, BP_OK) << program.text;
    return program.run({quarters_of({kSteps, 3, 3}, 1),
                        HostTensor::of(BP_DTYPE_INT32, {3}, std::vector<int32_t>{kSteps, 7, kSteps - 1})});
  };
  const Outcome seen = outcome("0"), expected = outcome("1");
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<float>(), expected.outputs[0].as<float>());
}

TEST_F(Microsoft, QLinearSigmoidAndLeakyReluAreTables) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_UINT8, {7}).input("z", BP_DTYPE_INT8, {6});
  const auto number = [&](const char* name, float value) { b.weight<float>(name, BP_DTYPE_FLOAT, {}, {value}); };
  number("x_scale", 0.05f);
  number("y_scale", 1.0f / 256);
  number("z_scale", 0.5f);
  number("l_scale", 0.25f);
  b.weight<uint8_t>("x_zero", BP_DTYPE_UINT8, {}, {120}).weight<uint8_t>("y_zero", BP_DTYPE_UINT8, {}, {0});
  b.weight<int8_t>("z_zero", BP_DTYPE_INT8, {}, {3}).weight<int8_t>("l_zero", BP_DTYPE_INT8, {}, {-5});
  b.node("com.microsoft::QLinearSigmoid", 1, {"x", "x_scale", "x_zero", "y_scale", "y_zero"}, {"y"}, BP_DTYPE_UINT8);
  b.node("com.microsoft::QLinearLeakyRelu", 1, {"z", "z_scale", "z_zero", "l_scale", "l_zero"}, {"l"}, BP_DTYPE_INT8,
         {{"alpha", 0.25f}});
  b.output("y").output("l");
  const Outcome outcome = run(b, {HostTensor::of(BP_DTYPE_UINT8, {7}, Bytes{0, 60, 100, 120, 140, 200, 255}),
                                  HostTensor::of(BP_DTYPE_INT8, {6}, std::vector<int8_t>{-128, -20, 3, 4, 20, 127})});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  EXPECT_THAT(outcome.outputs[0].as<uint8_t>(), ElementsAre(1, 12, 69, 128, 187, 251, 255));
  EXPECT_THAT(outcome.outputs[1].as<int8_t>(), ElementsAre(-71, -17, -5, -3, 29, 127));
}

}  // namespace
}  // namespace backplane::cpu::testing
