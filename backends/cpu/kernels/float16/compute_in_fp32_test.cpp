// SPDX-License-Identifier: Apache-2.0
// Compares operators on 16-bit floats with those on FLOAT in reference mode: results must be the same, rounded once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>

#include "kernels/common/float16.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using Extents = std::vector<int64_t>;
using Floats = std::vector<float>;

float rounded(bp_dtype_t dtype, float x) {
  return dtype == BP_DTYPE_FLOAT16 ? float{Half(x)} : dtype == BP_DTYPE_BFLOAT16 ? float{BFloat16(x)} : x;
}

// Numbers between -1 and 1 that both 16-bit types represent exactly.
Floats noise(const Extents& extents, uint32_t seed) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  Floats data(static_cast<size_t>(count));
  for (float& x : data) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 25) / 64.0f - 1;
  }
  return data;
}

HostTensor tensor(bp_dtype_t dtype, const Extents& extents, const Floats& values) {
  if (dtype == BP_DTYPE_FLOAT) return HostTensor::of(dtype, extents, values);
  std::vector<uint16_t> bits;
  for (float x : values) bits.push_back(dtype == BP_DTYPE_FLOAT16 ? Half(x).bits : BFloat16(x).bits);
  return HostTensor::of(dtype, extents, bits);
}

Floats floats(const HostTensor& tensor) {
  if (tensor.dtype == BP_DTYPE_FLOAT) return tensor.as<float>();
  Floats values;
  for (uint16_t bits : tensor.as<uint16_t>())
    values.push_back(tensor.dtype == BP_DTYPE_FLOAT16 ? half_to_float(bits)
                                                      : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  return values;
}

// A graph that computes "y" from "x", both of type `dtype`.
struct Network : GraphBuilder {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  void known(const std::string& name, const Extents& extents, uint32_t seed) {
    weight_bytes(name, dtype, extents, tensor(dtype, extents, noise(extents, seed)).bytes);
  }
  void made(const std::string& op, uint32_t version, const std::vector<std::string>& inputs,
            const Attributes& attributes = {}) {
    node(op, version, inputs, {"y"}, dtype, attributes);
  }
};

struct Case {
  const char* name;
  Extents input;
  std::function<void(Network&)> build;
};

const Attributes kPadded{{"pads", Extents{1, 1, 1, 1}}};
const Case kCases[] = {
    {"ConvOfFewChannels",
     {2, 3, 8, 7},
     [](Network& n) {
       n.known("w", {5, 3, 3, 3}, 1), n.known("b", {5}, 2);
       n.made("Conv", 22, {"x", "w", "b"}, kPadded);
     }},
    {"ConvOfUnknownWeights",
     {6, 6, 3, 3},
     [](Network& n) {
       n.known("w", {2, 6, 9, 9}, 1);
       n.made("Conv", 22, {"w", "x"}, kPadded);
     }},
    {"ConvOfEachChannel",
     {2, 20, 9, 9},
     [](Network& n) {
       n.known("w", {20, 1, 3, 3}, 1);
       n.made("Conv", 22, {"x", "w"}, {{"group", int64_t{20}}, {"strides", Extents{2, 2}}});
     }},
    {"MatMul",
     {9, 70},
     [](Network& n) {
       n.known("w", {70, 33}, 1), n.made("MatMul", 13, {"x", "w"});
     }},
    {"MatMulOfOneRow",
     {1, 70},
     [](Network& n) {
       n.known("w", {70, 33}, 1), n.made("MatMul", 13, {"x", "w"});
     }},
    {"MatMulOfUnknown",
     {3, 20, 20},
     [](Network& n) {
       n.made("MatMul", 13, {"x", "x"});
     }},
    {"Gemm",
     {9, 70},
     [](Network& n) {
       n.known("w", {33, 70}, 1), n.known("b", {33}, 2);
       n.made("Gemm", 13, {"x", "w", "b"}, {{"transB", int64_t{1}}});
     }},
    {"AddByPieces",
     {5, 1001},
     [](Network& n) {
       n.known("w", {5, 1001}, 1), n.made("Add", 14, {"x", "w"});
     }},
    {"AddOfWholePieces",
     {4, 1024},
     [](Network& n) {
       n.made("Add", 14, {"x", "x"});
     }},
    {"AddOfRow",
     {50, 100},
     [](Network& n) {
       n.known("w", {100}, 1), n.made("Add", 14, {"x", "w"});
     }},
    {"SubtractFromOne",
     {50, 100},
     [](Network& n) {
       n.known("w", {1, 1, 1}, 1), n.made("Sub", 14, {"w", "x"});
     }},
    {"Clip",
     {3000},
     [](Network& n) {
       n.weight_bytes("high", n.dtype, {}, tensor(n.dtype, {}, {0.5f}).bytes);
       n.made("Clip", 13, {"x", "", "high"});
     }},
    {"Tanh", {3000}, [](Network& n) { n.made("Tanh", 13, {"x"}); }},
    {"Softmax", {30, 100}, [](Network& n) { n.made("Softmax", 13, {"x"}); }},
    {"LayerNormalization",
     {30, 100},
     [](Network& n) {
       n.known("s", {100}, 1), n.made("LayerNormalization", 17, {"x", "s"});
     }},
    {"MaxPool",
     {2, 5, 9, 9},
     [](Network& n) {
       n.made("MaxPool", 22, {"x"}, {{"kernel_shape", Extents{3, 3}}, {"strides", Extents{2, 2}}});
     }},
    // A Conv of known operands is computed at compile time, in the formats that it would use at run time.
    {"KnownConv",
     {2, 5, 8, 7},
     [](Network& n) {
       n.known("k", {2, 3, 8, 7}, 3), n.known("w", {5, 3, 3, 3}, 1);
       n.node("Conv", 22, {"k", "w"}, {"c"}, n.dtype, kPadded).type("c", n.dtype, {2, 5, 8, 7});
       n.made("Max", 13, {"x", "c"});
     }},
};

class ComputeInFp32 : public ::testing::TestWithParam<Case> {};

HostTensor run(const Case& test, bp_dtype_t dtype, const char* reference, const char* threads) {
  setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
  Plugin plugin(threads);
  Network network;
  network.dtype = dtype;
  network.input("x", dtype, Extents(test.input.size(), -1));
  test.build(network);
  network.output("y");
  Compiled program(plugin, network.graph());
  const HostTensor x = tensor(dtype, test.input, noise(test.input, 99));
  program.run({x});
  const Outcome outcome = program.run({x});  // again, with the weights that the first run converted
  EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
  return outcome.outputs.at(0);
}

TEST_P(ComputeInFp32, RoundsOnce) {
  const HostTensor expected = run(GetParam(), BP_DTYPE_FLOAT, "1", "1");
  const Floats b = floats(expected);
  for (bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}) {
    for (const char* threads : {"1", "3"}) {
      const HostTensor seen = run(GetParam(), dtype, "0", threads);
      ASSERT_EQ(seen.extents, expected.extents);
      const Floats a = floats(seen);
      const float half_ulp = dtype == BP_DTYPE_FLOAT16 ? 0x1p-11f : dtype == BP_DTYPE_BFLOAT16 ? 0x1p-8f : 0;
      for (size_t i = 0; i < b.size(); ++i)
        ASSERT_NEAR(a[i], b[i], half_ulp * std::fabs(b[i]) + 1e-5f) << i << " of type " << dtype << " on " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, ComputeInFp32, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Tests vectorized conversions, including the elements after the last whole vector.
TEST(Float16Arrays, AreCastLikeSingleElements) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  constexpr int64_t kCount = 65536 - 3;
  std::vector<uint16_t> patterns;
  Floats numbers;
  for (int64_t i = 0; i < kCount; ++i) {
    patterns.push_back(static_cast<uint16_t>(i));
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(i) * 65539u));  // numbers of all exponents
  }
  for (bp_dtype_t half : {BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}) {
    for (bool widens : {true, false}) {
      Plugin plugin;
      GraphBuilder graph;
      const bp_dtype_t from = widens ? half : BP_DTYPE_FLOAT, to = widens ? BP_DTYPE_FLOAT : half;
      graph.input("x", from, {kCount}).node("Cast", 19, {"x"}, {"y"}, to, {{"to", int64_t{to}}}).output("y");
      Compiled program(plugin, graph.graph());
      const Outcome outcome =
          program.run({widens ? HostTensor::of(from, {kCount}, patterns) : HostTensor::of(from, {kCount}, numbers)});
      ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
      const Floats seen = floats(outcome.outputs.at(0));
      const Floats given = widens ? floats(HostTensor::of(half, {kCount}, patterns)) : numbers;
      for (size_t i = 0; i < given.size(); ++i) {
        const float expected = rounded(half, given[i]);
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(seen[i])) << i;
        else
          ASSERT_EQ(std::bit_cast<uint32_t>(seen[i]), std::bit_cast<uint32_t>(expected)) << i << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace backplane::cpu::testing
