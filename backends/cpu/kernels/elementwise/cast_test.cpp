// SPDX-License-Identifier: Apache-2.0
// Tests Cast to integers of 2 and 4 bits, and operators at the limits of their types and extents. The expected values
// are those of ONNX's reference implementation.
#include <gtest/gtest.h>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

// The bits of the elements, in order.
template <class T>
std::vector<int> cast(bp_dtype_t from, const std::vector<T>& values, bp_dtype_t to, int bits) {
  Plugin plugin;
  GraphBuilder graph;
  const std::vector<int64_t> extents{static_cast<int64_t>(values.size())};
  graph.input("x", from, extents)
      .node("Cast", 25, {"x"}, {"y"}, to, {{"to", int64_t{to}}})
      .type("y", to, extents)
      .output("y");
  const Outcome seen = Compiled(plugin, graph.graph()).run({HostTensor::of(from, extents, values)});
  EXPECT_EQ(seen.status, BP_OK) << seen.text;
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

TEST(Reduce, TakesRootsOfSumsThatAreBeyondTheType) {
  GraphBuilder graph;
  graph.weight<int32_t>("x", BP_DTYPE_INT32, {2}, {40000, 40000});
  graph.node("ReduceL2", 18, {"x"}, {"y"}, BP_DTYPE_INT32);
  const Outcome seen = run_on(graph);
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<int32_t>(), (std::vector<int32_t>{56568}));
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
