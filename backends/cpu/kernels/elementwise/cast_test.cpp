// SPDX-License-Identifier: Apache-2.0
// Tests Cast to integers. The expected values are those of ONNX's reference implementation where ONNX defines them.
#include <gtest/gtest.h>

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

// Casts the values, and returns the bits of the result's elements in order.
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

// The expected values follow docs/decisions/0019-casts-beyond-the-range.md.
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

}  // namespace
}  // namespace backplane::cpu::testing
