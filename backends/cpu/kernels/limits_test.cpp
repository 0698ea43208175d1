// SPDX-License-Identifier: Apache-2.0
// Operators at the limits of their types and extents. The expected values are those of ONNX's reference implementation,
// where they are defined.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::HasSubstr;

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

TEST(PRelu, OfASlopeThatWouldEnlargeXIsRefused) {
  const auto matrix = [](int64_t rows, const std::vector<float>& data) {
    return HostTensor::of(BP_DTYPE_FLOAT, {rows, 2}, data);
  };
  GraphBuilder graph;
  graph.input("x", BP_DTYPE_FLOAT, {-2, 2}).input("slope", BP_DTYPE_FLOAT, {-3, 2});
  graph.node("PRelu", 16, {"x", "slope"}, {"y"}).output("y");
  Plugin plugin;
  Compiled program(plugin, graph.graph());
  const Outcome shared = program.run({matrix(2, {-1, 2, -3, -4}), matrix(1, {2, 3})});
  ASSERT_EQ(shared.status, BP_OK) << shared.text;
  EXPECT_EQ(shared.outputs[0].as<float>(), (std::vector<float>{-2, 2, -6, -12}));
  const Outcome larger = program.run({matrix(1, {-1, 2}), matrix(2, {2, 3, 4, 5})});
  EXPECT_EQ(larger.status, BP_TYPE_MISMATCH);
  EXPECT_NE(larger.text.find("slope [2,2] does not broadcast to x [1,2]"), std::string::npos) << larger.text;
}

// As in numpy.arange, which ONNX's reference calls.
TEST(Range, WithoutANumberOfElementsIsRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  GraphBuilder graph;
  graph.input("start", BP_DTYPE_FLOAT, {}).input("limit", BP_DTYPE_FLOAT, {}).input("delta", BP_DTYPE_FLOAT, {});
  graph.node("Range", 11, {"start", "limit", "delta"}, {"y"}).output("y");
  Plugin plugin;
  Compiled program(plugin, graph.graph());
  const auto run = [&](float start, float limit, float delta) {
    const auto scalar = [](float x) { return HostTensor::of(BP_DTYPE_FLOAT, {}, std::vector<float>{x}); };
    return program.run({scalar(start), scalar(limit), scalar(delta)});
  };
  EXPECT_EQ(run(0, -4, 1).outputs[0].extents, (std::vector<int64_t>{0}));
  for (const auto& [start, limit, delta] :
       {std::array{kNan, 4.0f, 1.0f}, {0.0f, kNan, 1.0f}, {0.0f, 4.0f, kNan}, {kInfinity, kInfinity, 1.0f}}) {
    const Outcome seen = run(start, limit, delta);
    EXPECT_EQ(seen.status, BP_TYPE_MISMATCH);
    EXPECT_NE(seen.text.find("has no number of elements"), std::string::npos) << seen.text;
  }
}

TEST(Sum, OfShapesThatDoNotBroadcastNamesAllOfThem) {
  GraphBuilder graph;
  graph.input("a", BP_DTYPE_FLOAT, {-2}).input("b", BP_DTYPE_FLOAT, {-3}).input("c", BP_DTYPE_FLOAT, {-4});
  graph.node("Sum", 13, {"a", "b", "c"}, {"y"}).output("y");
  Plugin plugin;
  Compiled program(plugin, graph.graph());
  const auto zeros = [](int64_t n) {
    return HostTensor::of(BP_DTYPE_FLOAT, {n}, std::vector<float>(static_cast<size_t>(n)));
  };
  const Outcome seen = program.run({zeros(2), zeros(3), zeros(2)});
  EXPECT_EQ(seen.status, BP_TYPE_MISMATCH);
  EXPECT_NE(seen.text.find("shapes [2], [3] and [2] do not broadcast"), std::string::npos) << seen.text;
}

// Results of ONNX Runtime.
TEST(Pad, RemovesElementsBeforeItAddsOthers) {
  const auto padded = [](const char* mode, const std::vector<int64_t>& pads) {
    GraphBuilder graph;
    graph.weight<float>("x", BP_DTYPE_FLOAT, {5}, {0, 1, 2, 3, 4}).weight<int64_t>("pads", BP_DTYPE_INT64, {2}, pads);
    graph.node("Pad", 25, {"x", "pads"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", std::string(mode)}}).output("y");
    Plugin plugin;
    Compiled program(plugin, graph.graph());
    return program.status == BP_OK ? program.run({}).outputs[0].as<float>() : std::vector<float>{};
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(padded("wrap", {-2, 3}), (Floats{2, 3, 4, 2, 3, 4}));
  EXPECT_EQ(padded("wrap", {3, -2}), (Floats{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(padded("wrap", {-1, -1}), (Floats{1, 2, 3}));
  EXPECT_EQ(padded("reflect", {-2, 2}), (Floats{2, 3, 4, 3, 2}));
  EXPECT_EQ(padded("edge", {3, -2}), (Floats{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(padded("constant", {-6, 3}), (Floats{0, 0}));
  EXPECT_EQ(padded("wrap", {-5, 3}), Floats{});  // refused
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

std::string pad_refusal(const std::vector<int64_t>& pads, const std::vector<int64_t>& axes, const char* mode) {
  const auto count = [](const std::vector<int64_t>& list) { return static_cast<int64_t>(list.size()); };
  GraphBuilder graph;
  graph.weight<float>("x", BP_DTYPE_FLOAT, {2, 2}, {1, 2, 3, 4}).weight("pads", BP_DTYPE_INT64, {count(pads)}, pads);
  graph.weight("axes", BP_DTYPE_INT64, {count(axes)}, axes);
  graph.node("Pad", 18, {"x", "pads", "", "axes"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", mode}});
  return run_on(graph).text;
}

TEST(Pad, SaysWhichAxisAndWhichPadsItRefuses) {
  EXPECT_THAT(pad_refusal({1, 1}, {7}, "constant"), HasSubstr("axis 7 is out of range for rank 2"));
  EXPECT_THAT(pad_refusal({1, 1, 1, 1}, {1, -1}, "constant"), HasSubstr("axis -1 is repeated among 2 axes"));
  EXPECT_THAT(pad_refusal({1}, {1}, "constant"), HasSubstr("pads has 1 elements for 1 axes of shape"));
  EXPECT_THAT(pad_refusal({-2, 1}, {1}, "reflect"), HasSubstr("pads of -2 and 1 leave no element of axis 1"));
}

TEST(Split, SaysWhichExtentsItRefuses) {
  const auto refusal = [](const std::vector<int64_t>& split) {
    GraphBuilder graph;
    graph.weight<float>("x", BP_DTYPE_FLOAT, {4}, {1, 2, 3, 4});
    graph.weight("split", BP_DTYPE_INT64, {static_cast<int64_t>(split.size())}, split);
    graph.node("Split", 18, {"x", "split"}, {"y", "z"}).output("z");
    return run_on(graph).text;
  };
  EXPECT_THAT(refusal({1, 1, 2}), HasSubstr("split has 3 extents for 2 outputs"));
  EXPECT_THAT(refusal({-1, 5}), HasSubstr("split contains the extent -1; axis 0 of [4] has 4"));
  EXPECT_THAT(refusal({1, 2}), HasSubstr("do not add up to 4, the extent of axis 0"));
}

}  // namespace
}  // namespace backplane::cpu::testing
