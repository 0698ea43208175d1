// SPDX-License-Identifier: Apache-2.0
// Tests Cast to integers, and operators at the limits of their types and extents. The expected values are those of
// ONNX's reference implementation, where they are defined.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

template <class T>
Outcome run_cast(bp_dtype_t from, const std::vector<T>& values, bp_dtype_t to) {
  Plugin plugin;
  GraphBuilder graph;
  const std::vector<int64_t> extents{static_cast<int64_t>(values.size())};
  graph.input("x", from, extents)
      .node("Cast", 25, {"x"}, {"y"}, to, {{"to", int64_t{to}}})
      .type("y", to, extents)
      .output("y");
  const Outcome seen = Compiled(plugin, graph.graph()).run({HostTensor::of(from, extents, values)});
  EXPECT_EQ(seen.status, BP_OK) << seen.text;
  return seen;
}

// The bits of the elements, in order.
template <class T>
std::vector<int> cast(bp_dtype_t from, const std::vector<T>& values, bp_dtype_t to, int bits) {
  const Outcome seen = run_cast(from, values, to);
  std::vector<int> elements;
  for (size_t i = 0; i < values.size() && seen.status == BP_OK; ++i) {
    const auto at = i * static_cast<size_t>(bits);
    elements.push_back(static_cast<uint8_t>(seen.outputs[0].bytes.at(at / 8)) >> at % 8 & ((1 << bits) - 1));
  }
  return elements;
}

using Bits = std::vector<int>;

TEST(Cast, OfIntegersKeepsTheLowestBits) {
  const std::vector<int32_t> x{16777217, 1073741825, -1073741825, 300, 17, -9, 5};
  for (const bp_dtype_t to : {BP_DTYPE_UINT4, BP_DTYPE_INT4})
    EXPECT_EQ(cast(BP_DTYPE_INT32, x, to, 4), (Bits{1, 1, 15, 12, 1, 7, 5}));
  for (const bp_dtype_t to : {BP_DTYPE_UINT2, BP_DTYPE_INT2})
    EXPECT_EQ(cast(BP_DTYPE_INT32, x, to, 2), (Bits{1, 1, 3, 0, 1, 3, 1}));
  const std::vector<int64_t> large{(int64_t{1} << 53) + 1, -(int64_t{1} << 53) - 1, INT64_MAX};
  EXPECT_EQ(cast(BP_DTYPE_INT64, large, BP_DTYPE_UINT4, 4), (Bits{1, 15, 15}));
  EXPECT_EQ(cast(BP_DTYPE_UINT64, std::vector<uint64_t>{UINT64_MAX, 18}, BP_DTYPE_INT4, 4), (Bits{15, 2}));
  EXPECT_EQ(cast(BP_DTYPE_BOOL, std::vector<uint8_t>{1, 0, 1}, BP_DTYPE_INT4, 4), (Bits{1, 0, 1}));
  std::vector<int32_t> many(2500);  // several blocks
  Bits expected;
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<int32_t>(16777216 + i);
    expected.push_back(static_cast<int>(i % 16));
  }
  EXPECT_EQ(cast(BP_DTYPE_INT32, many, BP_DTYPE_UINT4, 4), expected);
}

TEST(Cast, OfFloatsTruncatesAndWraps) {
  const std::vector<float> x{3.7f, -3.7f, -9, 17, 300};
  EXPECT_EQ(cast(BP_DTYPE_FLOAT, x, BP_DTYPE_UINT4, 4), (Bits{3, 13, 7, 1, 12}));
  EXPECT_EQ(cast(BP_DTYPE_FLOAT, x, BP_DTYPE_INT2, 2), (Bits{3, 1, 3, 1, 0}));
}

// docs/decisions/0019-casts-beyond-the-range.md
TEST(Cast, OfFloatsBeyondTheRange) {
  const std::vector<float> x{300, -300, -1.5f, 70000, 1e10f, -1e10f, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<double> wide(x.begin(), x.end());
  const auto check = [&](bp_dtype_t to, auto expected) {
    using T = typename decltype(expected)::value_type;
    for (const Outcome& seen : {run_cast(BP_DTYPE_FLOAT, x, to), run_cast(BP_DTYPE_DOUBLE, wide, to)}) {
      ASSERT_EQ(seen.outputs.size(), 1u);
      EXPECT_EQ(seen.outputs[0].as<T>(), expected) << to;
    }
  };
  check(BP_DTYPE_INT8, std::vector<int8_t>{44, -44, -1, 112, -1, 0, 0});
  check(BP_DTYPE_UINT8, std::vector<uint8_t>{44, 212, 255, 112, 255, 0, 0});
  check(BP_DTYPE_INT16, std::vector<int16_t>{300, -300, -1, 4464, -1, 0, 0});
  check(BP_DTYPE_UINT16, std::vector<uint16_t>{300, 65236, 65535, 4464, 65535, 0, 0});
  check(BP_DTYPE_INT32, std::vector<int32_t>{300, -300, -1, 70000, INT32_MAX, INT32_MIN, 0});
  check(BP_DTYPE_UINT32, std::vector<uint32_t>{300, 0, 0, 70000, UINT32_MAX, 0, 0});
  check(BP_DTYPE_INT64, std::vector<int64_t>{300, -300, -1, 70000, 10000000000, -10000000000, 0});
  check(BP_DTYPE_UINT64, std::vector<uint64_t>{300, 0, 0, 70000, 10000000000, 0, 0});
}

// Runs a graph whose nodes read weights only, and returns its output y.
Outcome run_on(GraphBuilder& graph) {
  Plugin plugin;
  graph.output("y");
  return Compiled(plugin, graph.graph()).run({});
}

TEST(Pow, OfLongsHasResultsOf64Bits) {
  GraphBuilder graph;
  graph.weight<int64_t>("x", BP_DTYPE_INT64, {1}, {10000000000}).weight<float>("e", BP_DTYPE_FLOAT, {1}, {1.5f});
  graph.node("Pow", 15, {"x", "e"}, {"y"}, BP_DTYPE_INT64);
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<int64_t>(), (std::vector<int64_t>{1000000000000000}));
}

TEST(Pow, OfIntegersTakesExponentsOf64Bits) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  GraphBuilder graph;
  graph.weight<int32_t>("x", BP_DTYPE_INT32, {3}, {-1, -1, 3});
  graph.weight<int64_t>("e", BP_DTYPE_INT64, {3}, {odd, -odd, int64_t{1} << 62});
  graph.node("Pow", 15, {"x", "e"}, {"y"}, BP_DTYPE_INT32);
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<int32_t>(),
            (std::vector<int32_t>{-1, -1, 1}));  // 3 to the power of 2^30 is 1 modulo 2^32
}

TEST(Reduce, TakesRootsOfSumsThatAreBeyondTheType) {
  GraphBuilder graph;
  graph.weight<int32_t>("x", BP_DTYPE_INT32, {2, 2}, {40000, 40000, INT32_MIN, 0});
  graph.weight<int64_t>("axes", BP_DTYPE_INT64, {1}, {1});
  graph.node("ReduceL2", 18, {"x", "axes"}, {"y"}, BP_DTYPE_INT32, {{"keepdims", int64_t{0}}});
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<int32_t>(), (std::vector<int32_t>{56568, INT32_MAX}));
}

TEST(Integers, BeyondTheirTypeAreConvertedAsByCast) {
  const auto one = [](GraphBuilder& graph) {
    const Outcome seen = run_on(graph);
    EXPECT_EQ(seen.status, BP_OK) << seen.text;
    return seen.status == BP_OK ? seen.outputs[0].as<int32_t>() : std::vector<int32_t>();
  };
  GraphBuilder gemm, shrink, range;
  gemm.weight<int32_t>("a", BP_DTYPE_INT32, {2, 1}, {2000000000, 3}).weight<int32_t>("b", BP_DTYPE_INT32, {1, 1}, {1});
  gemm.node("Gemm", 13, {"a", "b"}, {"y"}, BP_DTYPE_INT32, {{"alpha", 2.5f}});
  EXPECT_EQ(one(gemm), (std::vector<int32_t>{INT32_MAX, 7}));
  shrink.weight<int32_t>("x", BP_DTYPE_INT32, {3}, {2000000000, -2000000000, 16777217});
  shrink.node("Shrink", 9, {"x"}, {"y"}, BP_DTYPE_INT32, {{"lambd", 1e9f}, {"bias", -1e9f}});
  EXPECT_EQ(one(shrink), (std::vector<int32_t>{INT32_MAX, INT32_MIN, 0}));
  range.weight<int32_t>("start", BP_DTYPE_INT32, {}, {INT32_MIN})
      .weight<int32_t>("end", BP_DTYPE_INT32, {}, {INT32_MAX});
  range.weight<int32_t>("step", BP_DTYPE_INT32, {}, {1 << 30});
  range.node("Range", 11, {"start", "end", "step"}, {"y"}, BP_DTYPE_INT32);
  EXPECT_EQ(one(range), (std::vector<int32_t>{INT32_MIN, -(1 << 30), 0, 1 << 30}));
}

TEST(Celu, OfANegativeAlphaRises) {
  GraphBuilder graph;
  graph.weight<float>("x", BP_DTYPE_FLOAT, {3}, {-1, 0, 2});
  graph.node("Celu", 12, {"x"}, {"y"}, BP_DTYPE_FLOAT, {{"alpha", -2.0f}});
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  const std::vector<float> y = seen.outputs[0].as<float>();
  EXPECT_NEAR(y[0], -2 * std::expm1(0.5), 1e-6);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
}

TEST(Det, OfAMatrixWithNanIsNan) {
  GraphBuilder graph;
  graph.weight<float>("x", BP_DTYPE_FLOAT, {2, 2}, {0, 1, std::numeric_limits<float>::quiet_NaN(), 1});
  graph.node("Det", 22, {"x"}, {"y"});
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_TRUE(std::isnan(seen.outputs[0].as<float>()[0]));
}

TEST(Einsum, HasResultsOfTheLargestRank) {
  const std::vector<int64_t> ones(BP_MAX_RANK, 1);
  for (const char* equation : {"...a->...a", "...->..."}) {
    GraphBuilder graph;
    graph.weight<float>("x", BP_DTYPE_FLOAT, ones, {3});
    graph.node("Einsum", 12, {"x"}, {"y"}, BP_DTYPE_FLOAT, {{"equation", equation}});
    const Outcome seen = run_on(graph);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    EXPECT_EQ(seen.outputs[0].extents, ones) << equation;
  }
}

TEST(SupportVectors, MayBeEmpty) {
  GraphBuilder graph;
  graph.input("x", BP_DTYPE_FLOAT, {1, 0});
  graph.node("ai.onnx.ml::SVMRegressor", 1, {"x"}, {"y"}, BP_DTYPE_FLOAT,
             {{"n_supports", int64_t{1}}, {"coefficients", std::vector<float>{2}}, {"rho", std::vector<float>{0.5f}}});
  graph.output("y");
  Plugin plugin;
  const Outcome seen = Compiled(plugin, graph.graph()).run({HostTensor::of<float>(BP_DTYPE_FLOAT, {1, 0}, {})});
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<float>(), (std::vector<float>{0.5f}));
}

TEST(Resize, HasTheExtentsOfShapeInference) {
  GraphBuilder graph;
  graph.weight<float>("x", BP_DTYPE_FLOAT, {80}, std::vector<float>(80))
      .weight<float>("s", BP_DTYPE_FLOAT, {1}, {1.3f});
  graph.node("Resize", 19, {"x", "", "s"}, {"y"});
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].extents, (std::vector<int64_t>{104}));
}

// The policy enlarges the axis of 2^40 elements by the other axis's factor.
TEST(Resize, IsRefusedWhereAnExtentIsBeyondTheType) {
  GraphBuilder graph;
  graph.weight<float>("x", BP_DTYPE_FLOAT, {0, int64_t{1} << 40, 1}, {});
  graph.weight<int64_t>("sizes", BP_DTYPE_INT64, {2}, {5, INT32_MAX});
  graph.node("Resize", 19, {"x", "", "", "sizes"}, {"y"}, BP_DTYPE_FLOAT,
             {{"axes", std::vector<int64_t>{1, 2}}, {"keep_aspect_ratio_policy", "not_smaller"}});
  const Outcome seen = run_on(graph);
  EXPECT_NE(seen.status, BP_OK);
  EXPECT_NE(seen.text.find("keeps the aspect ratio"), std::string::npos) << seen.text;
}

TEST(Scalars, ThatAreEmptyAreRefused) {
  for (const char* op_type : {"Trilu", "Pad", "Dropout"}) {
    const bool trilu = op_type == std::string_view("Trilu");
    GraphBuilder graph;
    graph.weight<float>("x", BP_DTYPE_FLOAT, {2, 2}, {1, 2, 3, 4}).weight<int64_t>("k", BP_DTYPE_INT64, {0}, {});
    graph.weight<float>("f", BP_DTYPE_FLOAT, {0}, {}).weight<int64_t>("pads", BP_DTYPE_INT64, {4}, {1, 0, 0, 0});
    std::vector<std::string> inputs{"x", trilu ? "k" : "f"};
    if (op_type == std::string_view("Pad")) inputs = {"x", "pads", "f"};
    graph.node(op_type, 14, inputs, {"y"});
    EXPECT_NE(run_on(graph).status, BP_OK) << op_type;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing
