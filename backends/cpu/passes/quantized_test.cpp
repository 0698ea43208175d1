// SPDX-License-Identifier: Apache-2.0
// Compares networks with QuantizeLinear and DequantizeLinear around each operator with reference mode, which computes
// in fp32. Results may differ only where a sum is near the middle between two quantized values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::quantized {
namespace {

using Extents = std::vector<int64_t>;

uint32_t next(uint32_t& seed) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

int64_t product(const Extents& extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

// A network with input "x" and output "y". For a value NAME, NAME.q is the quantized and NAME.d the dequantized value.
struct Quantized : GraphBuilder {
  uint32_t seed = 7;
  bp_dtype_t quantized_type = BP_DTYPE_UINT8;

  std::string bytes(int64_t count, int low, int high) {
    std::string data;
    for (int64_t i = 0; i < count; ++i)
      data.push_back(static_cast<char>(low + static_cast<int>(next(seed) % static_cast<uint32_t>(high - low + 1))));
    return data;
  }
  Quantized& node(const std::string& op_type, uint32_t version, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, bp_dtype_t dtype = BP_DTYPE_FLOAT,
                  const Attributes& attributes = {}) {
    GraphBuilder::node(op_type, version, inputs, outputs, dtype, attributes);
    return *this;
  }
  Quantized& typed(const std::string& name, const Extents& extents) {
    for (const char* part : {"", ".d"}) type(name + part, BP_DTYPE_FLOAT, extents);
    type(name + ".q", quantized_type, extents);
    return *this;
  }
  // Adds the scale and zero point of `name`, and its QuantizeLinear and DequantizeLinear.
  Quantized& quantize(const std::string& name, float scale, int zero) {
    weight<float>(name + ".s", BP_DTYPE_FLOAT, {}, {scale});
    weight_bytes(name + ".z", quantized_type, {}, std::string(1, static_cast<char>(zero)));
    return add_qdq(name, name);
  }
  // Adds a QuantizeLinear and a DequantizeLinear that use the scale and zero point of the value `of`.
  Quantized& add_qdq(const std::string& name, const std::string& of) {
    node("QuantizeLinear", 21, {name, of + ".s", of + ".z"}, {name + ".q"}, quantized_type);
    node("DequantizeLinear", 21, {name + ".q", of + ".s", of + ".z"}, {name + ".d"});
    return *this;
  }
  // Adds random quantized weights with one scale per element of `axis`, and their DequantizeLinear.
  Quantized& weights(const std::string& name, bp_dtype_t dtype, const Extents& extents, int64_t axis) {
    const int64_t count = extents[static_cast<size_t>(axis)];
    const bool is_signed = dtype == BP_DTYPE_INT8;
    type(name, BP_DTYPE_FLOAT, extents);
    std::vector<float> scales;
    for (int64_t i = 0; i < count; ++i) scales.push_back(0.002f + 0.00001f * static_cast<float>(next(seed) % 100));
    weight_bytes(name + ".q", dtype, extents, bytes(product(extents), is_signed ? -127 : 0, is_signed ? 127 : 255));
    weight<float>(name + ".s", BP_DTYPE_FLOAT, {count}, scales);
    weight_bytes(name + ".z", dtype, {count},
                 std::string(static_cast<size_t>(count), static_cast<char>(is_signed ? 0 : 128)));
    node("DequantizeLinear", 21, {name + ".q", name + ".s", name + ".z"}, {name}, BP_DTYPE_FLOAT, {{"axis", axis}});
    return *this;
  }
  Quantized& bias(const std::string& name, int64_t count) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(next(seed) % 4001) - 2000);
    weight<int32_t>(name + ".q", BP_DTYPE_INT32, {count}, values);
    weight<float>(name + ".s", BP_DTYPE_FLOAT, {}, {0.00005f});
    node("DequantizeLinear", 21, {name + ".q", name + ".s"}, {name});
    return *this;
  }
  Quantized& conv(const std::string& in, const std::string& out, bp_dtype_t dtype, const Extents& extents,
                  const Attributes& attributes = {}) {
    weights(out + ".w", dtype, extents, 0).bias(out + ".b", extents[0]);
    node("Conv", 22, {in, out + ".w", out + ".b"}, {out}, BP_DTYPE_FLOAT, attributes);
    return *this;
  }
};

struct Case {
  const char* name;
  Extents input;
  double step;  // quantization step of the output
  std::function<void(Quantized&)> build;
  bool exact = false;  // true: all results must equal the reference's; false: 5% may differ by one step
};

Attributes window(int64_t kernel, int64_t stride, int64_t pad) {
  return {{"kernel_shape", Extents{kernel, kernel}},
          {"strides", Extents{stride, stride}},
          {"pads", Extents{pad, pad, pad, pad}}};
}

// Returns a case with a depthwise convolution with 3×3 windows.
Case depthwise(const char* name, bp_dtype_t quantized_type, const Extents& input, const Extents& strides,
               const Extents& pads, bool clips) {
  return {name, input, 0.03, [=](Quantized& n) {
            const int64_t channels = input[1];
            const bool is_signed = quantized_type == BP_DTYPE_INT8;
            n.quantized_type = quantized_type;
            n.weight<float>("low", BP_DTYPE_FLOAT, {}, {-0.4f}).weight<float>("high", BP_DTYPE_FLOAT, {}, {1.25f});
            n.quantize("x", 0.01f, is_signed ? -9 : 117);
            n.conv("x.d", "c", BP_DTYPE_INT8, {channels, 1, 3, 3},
                   {{"group", channels}, {"strides", strides}, {"pads", pads}});
            if (clips) n.node("Clip", 13, {"c", "low", "high"}, {"k"});
            n.quantize(clips ? "k" : "c", 0.03f, is_signed ? 5 : 130);
            n.node("Identity", 16, {clips ? "k.d" : "c.d"}, {"y"}).output("y");
          }};
}

// Returns a case with a pointwise convolution. If `adds`, the input is added to its result.
Case pointwise(const char* name, bp_dtype_t quantized_type, const Extents& input, int64_t channels, int64_t stride,
               bool adds) {
  return {name, input, 0.05, [=](Quantized& n) {
            const int zero = quantized_type == BP_DTYPE_INT8 ? -128 : 0;
            n.quantized_type = quantized_type;
            n.quantize("x", 0.01f, zero + 117);
            n.conv("x.d", "c", BP_DTYPE_INT8, {channels, input[1], 1, 1}, {{"strides", Extents{stride, stride}}});
            if (!adds) {
              n.weight<float>("low", BP_DTYPE_FLOAT, {}, {-1.5f}).weight<float>("high", BP_DTYPE_FLOAT, {}, {3});
              n.node("Clip", 13, {"c", "low", "high"}, {"k"}).quantize("k", 0.05f, zero + 100);
              n.node("Identity", 16, {"k.d"}, {"y"}).output("y");
              return;
            }
            n.typed("c", input).typed("s", input).quantize("c", 0.04f, zero + 131);
            n.node("Add", 14, {"x.d", "c.d"}, {"s"}).node("Relu", 14, {"s"}, {"k"}).typed("k", input);
            n.quantize("k", 0.05f, zero + 3).node("Identity", 16, {"k.d"}, {"y"}).output("y").output("x.q");
          }};
}

// Returns a case with a sum or product. If scales differ by a power of two, sums are often midway between quantized
// values.
Case sum(const char* name, bp_dtype_t quantized_type, const char* op, float scale) {
  return {name,
          {3, 5, 67, 71},
          static_cast<double>(scale),
          [=](Quantized& n) {
            const int zero = quantized_type == BP_DTYPE_INT8 ? -3 : 125;
            n.quantized_type = quantized_type;
            n.quantize("x", 0.0078125f, zero).typed("r", {3, 5, 67, 71});
            n.node("Abs", 13, {"x.d"}, {"r"}).quantize("r", 0.013f, zero + 9);
            n.node(op, 14, {"x.d", "r.d"}, {"s"}).quantize("s", scale, zero - 40);
            n.node("Identity", 16, {"s.d"}, {"y"}).output("y");
          },
          true};
}

const Case kCases[] = {
    depthwise("DepthwiseOfHalfVectors", BP_DTYPE_UINT8, {1, 32, 14, 14}, {1, 1}, {1, 1, 1, 1}, true),
    depthwise("DepthwiseOfVectorsAndAHalf", BP_DTYPE_UINT8, {2, 96, 15, 13}, {1, 1}, {1, 1, 1, 1}, false),
    depthwise("DepthwiseOfOddChannels", BP_DTYPE_INT8, {1, 149, 9, 8}, {1, 1}, {0, 2, 1, 0}, true),
    depthwise("DepthwiseWithoutPadding", BP_DTYPE_UINT8, {1, 70, 4, 4}, {1, 1}, {0, 0, 0, 0}, false),
    depthwise("DepthwiseByTwo", BP_DTYPE_UINT8, {1, 144, 16, 17}, {2, 2}, {0, 0, 1, 1}, false),
    depthwise("DepthwiseByTwoAndThree", BP_DTYPE_INT8, {2, 45, 11, 19}, {2, 3}, {1, 1, 1, 1}, true),
    depthwise("DepthwiseOfOneRow", BP_DTYPE_UINT8, {1, 64, 1, 9}, {1, 1}, {1, 1, 1, 1}, false),
    depthwise("DepthwiseOfOneColumn", BP_DTYPE_UINT8, {1, 64, 9, 1}, {1, 1}, {1, 1, 1, 1}, false),
    depthwise("DepthwiseOfLessThanItsWindow", BP_DTYPE_UINT8, {1, 64, 2, 2}, {1, 1}, {2, 2, 2, 2}, false),
    pointwise("PointsOfOneChunk", BP_DTYPE_UINT8, {1, 16, 9, 7}, 64, 1, false),
    pointwise("PointsOfSharedChunks", BP_DTYPE_UINT8, {2, 36, 13, 5}, 120, 1, false),
    pointwise("PointsByTwo", BP_DTYPE_UINT8, {2, 64, 15, 29}, 128, 2, false),
    pointwise("PointsOfManyChannels", BP_DTYPE_UINT8, {1, 260, 3, 4}, 576, 1, false),
    pointwise("PointsOfOddChannels", BP_DTYPE_UINT8, {1, 67, 8, 8}, 64, 1, false),
    pointwise("PointsOfFewChannels", BP_DTYPE_UINT8, {1, 3, 5, 5}, 7, 1, false),
    pointwise("PointsOfAFewVectors", BP_DTYPE_INT8, {2, 67, 17, 1}, 24, 1, false),
    pointwise("PointsOfOnePosition", BP_DTYPE_UINT8, {3, 130, 1, 1}, 80, 1, false),
    pointwise("PointsByThree", BP_DTYPE_INT8, {1, 65, 20, 31}, 72, 3, false),
    pointwise("PointsAndASum", BP_DTYPE_UINT8, {2, 192, 7, 6}, 192, 1, true),
    pointwise("PointsOfSharedChunksAndASum", BP_DTYPE_UINT8, {1, 120, 7, 7}, 120, 1, true),
    pointwise("PointsOfSignedValues", BP_DTYPE_INT8, {1, 64, 9, 7}, 192, 1, false),
    pointwise("PointsOfSignedValuesAndASum", BP_DTYPE_INT8, {1, 128, 9, 7}, 128, 1, true),
    sum("SumsOfUnsignedValues", BP_DTYPE_UINT8, "Add", 0.015625f),
    sum("SumsOfSignedValues", BP_DTYPE_INT8, "Add", 0.0117f),
    sum("ProductsOfUnsignedValues", BP_DTYPE_UINT8, "Mul", 0.0078125f),
    sum("ProductsOfSignedValues", BP_DTYPE_INT8, "Mul", 0.011f),
    {"Residual",
     {1, 3, 46, 46},
     0.02,
     [](Quantized& n) {
       n.typed("x", {1, 3, 46, 46}).typed("r", {1, 32, 23, 23}).quantize("x", 0.01f, 119);
       n.conv("x.d", "c", BP_DTYPE_INT8, {32, 3, 7, 7}, window(7, 2, 3))
           .node("Relu", 14, {"c"}, {"r"})
           .quantize("r", 0.03f, 0);
       n.node("MaxPool", 22, {"r.d"}, {"m"}, BP_DTYPE_FLOAT, window(3, 2, 1))
           .typed("m", {1, 32, 12, 12})
           .add_qdq("m", "r");
       n.typed("a", {1, 140, 6, 6}).typed("b", {1, 140, 6, 6});
       n.conv("m.d", "a", BP_DTYPE_INT8, {140, 32, 1, 1}, window(1, 2, 0)).quantize("a", 0.02f, 127);
       n.conv("m.d", "b", BP_DTYPE_INT8, {140, 32, 3, 3}, window(3, 2, 1)).quantize("b", 0.05f, 131);
       n.node("Add", 14, {"a.d", "b.d"}, {"s"})
           .node("Relu", 14, {"s"}, {"sr"})
           .typed("sr", {1, 140, 6, 6})
           .quantize("sr", 0.04f, 0);
       n.node("GlobalAveragePool", 22, {"sr.d"}, {"g"}).quantize("g", 0.03f, 0);
       n.node("Flatten", 13, {"g.d"}, {"f"}).add_qdq("f", "g").weights("w", BP_DTYPE_INT8, {11, 140}, 0).bias("wb", 11);
       n.node("Gemm", 13, {"f.d", "w", "wb"}, {"h"}, BP_DTYPE_FLOAT, {{"transB", int64_t{1}}})
           .quantize("h", 0.02f, 128);
       n.node("Identity", 16, {"h.d"}, {"y"}).output("y");
     }},
    {"DepthwiseOfSignedValues",
     {2, 24, 15, 13},
     0.0231,
     [](Quantized& n) {
       n.quantized_type = BP_DTYPE_INT8;
       n.weight<float>("low", BP_DTYPE_FLOAT, {}, {0}).weight<float>("high", BP_DTYPE_FLOAT, {}, {1.25f});
       n.quantize("x", 0.01f, -9);
       n.conv("x.d", "c", BP_DTYPE_INT8, {24, 1, 3, 3}, {{"group", int64_t{24}}, {"pads", Extents{1, 1, 1, 1}}});
       n.node("Clip", 13, {"c", "low", "high"}, {"k"}).quantize("k", 0.01f, -128);
       n.conv("k.d", "p", BP_DTYPE_INT8, {40, 24, 1, 1}).typed("p", {2, 40, 15, 13}).quantize("p", 0.03f, 5);
       n.node("AveragePool", 22, {"p.d"}, {"g"}, BP_DTYPE_FLOAT, window(3, 2, 1)).quantize("g", 0.0231f, 3);
       n.node("Identity", 16, {"g.d"}, {"y"}).output("y");
     }},
    {"LimitsInTheMiddleOfSteps",  // 62.5 steps are rounded to 62, whether or not the zero point is even
     {2, 1, 15, 19},
     0x1p-8,
     [](Quantized& n) {
       n.weight<float>("low", BP_DTYPE_FLOAT, {}, {-62.5f / 256})
           .weight<float>("high", BP_DTYPE_FLOAT, {}, {62.5f / 256});
       n.quantize("x", 0.01f, 128);
       n.conv("x.d", "c", BP_DTYPE_INT8, {17, 1, 3, 3}, {{"dilations", Extents{2, 2}}, {"strides", Extents{2, 2}}});
       n.node("Clip", 13, {"c", "low", "high"}, {"k"}).quantize("k", 0x1p-8f, 101);
       n.node("Identity", 16, {"k.d"}, {"y"}).output("y");
     }},
    {"ProductsAndMoves",
     {3, 7, 48},
     0.1,
     [](Quantized& n) {
       n.quantize("x", 0.01f, 128).weights("w", BP_DTYPE_UINT8, {48, 65}, 1).typed("p", {3, 7, 65});
       n.node("MatMul", 13, {"x.d", "w"}, {"p"}).quantize("p", 0.02f, 128).typed("m", {3, 7, 65});
       n.node("Mul", 14, {"p.d", "p.d"}, {"m"}).quantize("m", 0.05f, 0);
       n.node("Transpose", 13, {"m.d"}, {"t"}, BP_DTYPE_FLOAT, {{"perm", Extents{0, 2, 1}}}).add_qdq("t", "m");
       n.node("Concat", 13, {"t.d", "t.d"}, {"j"}, BP_DTYPE_FLOAT, {{"axis", int64_t{1}}}).add_qdq("j", "m");
       n.conv("j.d", "c", BP_DTYPE_INT8, {5, 130, 3}, {{"pads", Extents{1, 1}}}).quantize("c", 0.1f, 100);
       n.node("Identity", 16, {"c.d"}, {"y"}).output("y").output("j.q");
     }},
    {"WhatElseIsRead",
     {1, 8, 6, 6},
     0.02,
     [](Quantized& n) {
       n.quantize("x", 0.01f, 128).conv("x.d", "c", BP_DTYPE_INT8, {16, 8, 1, 1}).quantize("c", 0.02f, 128);
       n.node("Neg", 13, {"c"}, {"y"}).output("y").output("c.q").output("x.d");
     }},
    {"OperatorsOnQuantizedValues",
     {1, 5, 9, 9},
     0.03,
     [](Quantized& n) {
       n.quantize("x", 0.01f, 128)
           .weights("w", BP_DTYPE_INT8, {20, 5, 3, 3}, 0)
           .weights("v", BP_DTYPE_INT8, {49, 30}, 1);
       for (const char* name : {"c", "p"}) {
         n.weight<float>(std::string(name) + ".s", BP_DTYPE_FLOAT, {}, {0.03f});
         n.weight_bytes(std::string(name) + ".z", BP_DTYPE_UINT8, {}, "x");
       }
       n.weight<int32_t>("b", BP_DTYPE_INT32, {20}, std::vector<int32_t>(20, 777))
           .weight<int64_t>("e", BP_DTYPE_INT64, {2}, {20, 49});
       n.node("QLinearConv", 10, {"x.q", "x.s", "x.z", "w.q", "w.s", "w.z", "c.s", "c.z", "b"}, {"c.q"},
              BP_DTYPE_UINT8);
       n.node("Reshape", 21, {"c.q", "e"}, {"f"}, BP_DTYPE_UINT8);
       n.node("QLinearMatMul", 21, {"f", "c.s", "c.z", "v.q", "v.s", "v.z", "p.s", "p.z"}, {"p.q"}, BP_DTYPE_UINT8);
       n.node("DequantizeLinear", 21, {"p.q", "p.s", "p.z"}, {"y"}).output("y");
     }},
};

class OnQuantizedValues : public ::testing::TestWithParam<Case> {};

Outcome run(const Case& test, bool reference, const std::string& threads) {
  setenv("BACKPLANE_CPU_REFERENCE", reference ? "1" : "0", 1);
  Plugin plugin(threads);
  Quantized network;
  network.input("x", BP_DTYPE_FLOAT, test.input);
  test.build(network);
  Compiled program(plugin, network.graph());
  uint32_t seed = 3;
  std::vector<float> x(static_cast<size_t>(product(test.input)));
  for (float& v : x) v = static_cast<float>(next(seed)) / 8388608.0f - 1;
  return program.run({HostTensor::of(BP_DTYPE_FLOAT, test.input, x)});
}

TEST_P(OnQuantizedValues, MatchesTheReference) {
  const Outcome expected = run(GetParam(), true, "1");
  ASSERT_EQ(expected.status, BP_OK) << expected.text;
  for (const char* threads : {"1", "2", "3"}) {
    const Outcome seen = run(GetParam(), false, threads);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    ASSERT_EQ(seen.outputs[0].extents, expected.outputs[0].extents);
    const std::vector<float> a = seen.outputs[0].as<float>(), b = expected.outputs[0].as<float>();
    size_t moved = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 1.01 * GetParam().step) << "[" << i << "]";
      moved += std::fabs(a[i] - b[i]) > 0.5 * GetParam().step;
    }
    EXPECT_LE(moved, GetParam().exact ? 0 : 1 + a.size() / 20);
    for (size_t o = 1; o < seen.outputs.size(); ++o) {
      const std::vector<uint8_t> p = seen.outputs[o].as<uint8_t>(), q = expected.outputs[o].as<uint8_t>();
      ASSERT_EQ(p.size(), q.size());
      if (seen.outputs[o].dtype == BP_DTYPE_FLOAT) {
        EXPECT_EQ(p, q) << "output " << o;
        continue;
      }
      for (size_t i = 0; i < p.size(); ++i) ASSERT_NEAR(p[i], q[i], 1) << "output " << o << " [" << i << "]";
    }
    float least = b[0], most = b[0];
    for (float v : b) least = std::min(least, v), most = std::max(most, v);
    EXPECT_GT(most - least, 10 * GetParam().step);  // otherwise even constant results would pass
  }
}

// The sum of so many quantized values does not fit in int32.
TEST(QuantizedAverage, OfManyPositions) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  constexpr int64_t kHeight = 2903, kWidth = 2904;
  for (const bp_dtype_t dtype : {BP_DTYPE_UINT8, BP_DTYPE_INT8}) {
    const bool is_signed = dtype == BP_DTYPE_INT8;
    const char most = static_cast<char>(is_signed ? 127 : 255), zero = static_cast<char>(is_signed ? -128 : 0);
    Plugin plugin;
    Quantized n;
    n.quantized_type = dtype;
    n.input("x", dtype, {1, 1, kHeight, kWidth}).weight<float>("s", BP_DTYPE_FLOAT, {}, {0.5f});
    n.weight_bytes("z", dtype, {}, std::string(1, zero));
    n.node("DequantizeLinear", 21, {"x", "s", "z"}, {"d"}).node("GlobalAveragePool", 22, {"d"}, {"g"});
    n.type("d", BP_DTYPE_FLOAT, {1, 1, kHeight, kWidth}).type("g", BP_DTYPE_FLOAT, {1, 1, 1, 1});
    n.node("QuantizeLinear", 21, {"g", "s", "z"}, {"y"}, dtype).output("y");
    const Outcome seen =
        Compiled(plugin, n.graph()).run({{dtype, {1, 1, kHeight, kWidth}, std::string(kHeight * kWidth, most)}});
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    EXPECT_EQ(seen.outputs[0].bytes, std::string(1, most));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, OnQuantizedValues, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backplane::cpu::testing::quantized
