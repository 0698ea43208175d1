// SPDX-License-Identifier: Apache-2.0
// Compares the vectorized loops of single operators with reference mode, at extents that leave every kind of remainder
// after the whole vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::vector_loops {
namespace {

using Extents = std::vector<int64_t>;
using Floats = std::vector<float>;

// Numbers between -1 and 1. Some are equal, to test in which order TopK returns them.
Floats noise(const Extents& extents, uint32_t seed) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  Floats data(static_cast<size_t>(count));
  for (float& x : data) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 20) / 2048.0f - 1;
  }
  return data;
}

struct Case {
  const char* name;
  Extents input;
  std::function<void(GraphBuilder&)> build;  // adds nodes that compute "y" from "x"
};

Case pool(const char* name, const char* op, Extents input, const Attributes& attributes) {
  return {name, std::move(input), [=](GraphBuilder& b) { b.node(op, 22, {"x"}, {"y"}, BP_DTYPE_FLOAT, attributes); }};
}

Case nbits(const char* name, int64_t rows, int64_t bits, int64_t block, bool with_zeros) {
  constexpr int64_t kDepth = 150, kColumns = 67;  // the last block is not full
  return {name, {rows, kDepth}, [=](GraphBuilder& b) {
            const int64_t blocks = (kDepth + block - 1) / block, zero_bytes = (blocks * bits + 7) / 8;
            std::vector<uint8_t> packed(static_cast<size_t>(kColumns * blocks * block * bits / 8)),
                zeros(static_cast<size_t>(kColumns * zero_bytes));
            for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<uint8_t>(i * 151 + i / 7);
            for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<uint8_t>(i * 89 + 5);
            b.weight<uint8_t>("packed", BP_DTYPE_UINT8, {kColumns, blocks, block * bits / 8}, packed);
            b.weight<float>("scales", BP_DTYPE_FLOAT, {kColumns * blocks}, noise({kColumns * blocks}, 3));
            b.weight<uint8_t>("zeros", BP_DTYPE_UINT8, {kColumns * zero_bytes}, zeros);
            b.node("com.microsoft::MatMulNBits", 1, {"x", "packed", "scales", with_zeros ? "zeros" : ""}, {"y"},
                   BP_DTYPE_FLOAT, {{"K", kDepth}, {"N", kColumns}, {"bits", bits}, {"block_size", block}});
          }};
}

Case top_k(const char* name, Extents input, int64_t k, int64_t largest) {
  return {name, std::move(input), [=](GraphBuilder& b) {
            b.weight<int64_t>("k", BP_DTYPE_INT64, {1}, {k});
            b.node("TopK", 11, {"x", "k"}, {"v", "i"}, BP_DTYPE_FLOAT, {{"largest", largest}});
            b.type("i", BP_DTYPE_INT64, {-1, -1});
            b.node("Cast", 19, {"i"}, {"f"}, BP_DTYPE_FLOAT, {{"to", int64_t{BP_DTYPE_FLOAT}}});
            b.node("Add", 14, {"v", "f"}, {"y"});  // checks both values and indices
          }};
}

Case resize(const char* name, Extents input, const char* mode, const Floats& scales) {
  return {name, std::move(input), [=](GraphBuilder& b) {
            b.weight<float>("scales", BP_DTYPE_FLOAT, {static_cast<int64_t>(scales.size())}, scales);
            b.node("Resize", 19, {"x", "", "scales"}, {"y"}, BP_DTYPE_FLOAT, {{"mode", std::string(mode)}});
          }};
}

const Case kCases[] = {
    pool("MaxPoolStride2", "MaxPool", {2, 3, 19, 37},
         {{"kernel_shape", Extents{3, 3}}, {"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{2, 2}}}),
    pool("MaxPoolDilated", "MaxPool", {1, 2, 23, 50},
         {{"kernel_shape", Extents{3, 4}}, {"dilations", Extents{2, 3}}, {"strides", Extents{1, 3}}}),
    pool("MaxPoolNarrow", "MaxPool", {2, 5, 7, 7}, {{"kernel_shape", Extents{2, 2}}, {"ceil_mode", int64_t{1}}}),
    pool("AveragePoolPadded", "AveragePool", {2, 3, 19, 37},
         {{"kernel_shape", Extents{3, 3}}, {"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{2, 2}}}),
    pool("AveragePoolCountsPadding", "AveragePool", {1, 3, 20, 40},
         {{"kernel_shape", Extents{5, 5}},
          {"pads", Extents{2, 2, 1, 2}},
          {"ceil_mode", int64_t{1}},
          {"strides", Extents{3, 1}},
          {"count_include_pad", int64_t{1}}}),
    pool("MaxPoolOfPartOfAWindow", "MaxPool", {1, 3, 6, 20},
         {{"kernel_shape", Extents{4, 3}},
          {"dilations", Extents{2, 1}},
          {"ceil_mode", int64_t{1}},
          {"strides", Extents{2, 1}}}),
    pool("AveragePoolOfPartOfAWindow", "AveragePool", {1, 3, 6, 20},
         {{"kernel_shape", Extents{8, 3}},
          {"pads", Extents{1, 0, 0, 0}},
          {"ceil_mode", int64_t{1}},
          {"strides", Extents{3, 1}},
          {"count_include_pad", int64_t{1}}}),
    pool("AveragePool3D", "AveragePool", {1, 2, 5, 6, 21}, {{"kernel_shape", Extents{2, 3, 2}}}),
    pool("GlobalAveragePool", "GlobalAveragePool", {2, 7, 5, 9}, {}),
    pool("GlobalMaxPool", "GlobalMaxPool", {2, 7, 5, 9}, {}),
    nbits("Decode4", 1, 4, 32, false),
    nbits("Decode4Zeros", 3, 4, 32, true),
    nbits("Decode8", 2, 8, 16, true),
    nbits("Decode2", 1, 2, 64, true),
    nbits("Prefill4", 13, 4, 64, true),
    nbits("SmallBlocks", 2, 4, 16, true),
    top_k("TopKLargest", {3, 1000}, 10, 1),
    top_k("TopKSmallest", {2, 777}, 300, 0),
    top_k("TopKAll", {2, 70}, 70, 1),
    resize("ResizeLinear", {1, 3, 9, 21}, "linear", {1, 1, 2, 2.5f}),
    resize("ResizeLinearSmaller", {1, 3, 30, 41}, "linear", {1, 1, 0.4f, 0.7f}),
    resize("ResizeCubic", {1, 2, 9, 21}, "cubic", {1, 1, 2, 1.5f}),
    resize("ResizeNearestTwice", {2, 3, 9, 21}, "nearest", {1, 1, 2, 2}),
    resize("ResizeNearestOdd", {2, 3, 9, 21}, "nearest", {1, 1, 0.7f, 1.3f}),
    {"GridSample",
     {1, 3, 13, 17},
     [](GraphBuilder& b) {
       Floats grid = noise({1, 11, 15, 2}, 9);
       for (float& g : grid) g *= 1.3f;  // some points are beyond the borders
       b.weight<float>("grid", BP_DTYPE_FLOAT, {1, 11, 15, 2}, grid);
       b.node("GridSample", 20, {"x", "grid"}, {"y"});
     }},
    {"LogSoftmax", {5, 37}, [](GraphBuilder& b) { b.node("LogSoftmax", 13, {"x"}, {"y"}); }},
    {"LpNormalization", {5, 37}, [](GraphBuilder& b) { b.node("LpNormalization", 22, {"x"}, {"y"}); }},
    {"LpNormalization1",
     {5, 37},
     [](GraphBuilder& b) {
       b.node("LpNormalization", 22, {"x"}, {"y"}, BP_DTYPE_FLOAT, {{"p", int64_t{1}}});
     }},
    {"GroupNormalization",
     {2, 6, 5, 7},
     [](GraphBuilder& b) {
       b.weight<float>("s", BP_DTYPE_FLOAT, {6}, noise({6}, 4)).weight<float>("b", BP_DTYPE_FLOAT, {6}, noise({6}, 5));
       b.node("GroupNormalization", 21, {"x", "s", "b"}, {"y"}, BP_DTYPE_FLOAT, {{"num_groups", int64_t{3}}});
     }},
    {"SkipLayerNormalization",
     {2, 3, 37},
     [](GraphBuilder& b) {
       for (const char* name : {"gamma", "beta", "bias"})
         b.weight<float>(name, BP_DTYPE_FLOAT, {37}, noise({37}, static_cast<uint32_t>(name[1])));
       b.weight<float>("skip", BP_DTYPE_FLOAT, {1, 3, 37}, noise({1, 3, 37}, 8));
       b.node("com.microsoft::SkipLayerNormalization", 1, {"x", "skip", "gamma", "beta", "bias"}, {"y"});
     }},
    {"BiasGelu",
     {5, 37},
     [](GraphBuilder& b) {
       b.weight<float>("bias", BP_DTYPE_FLOAT, {37}, noise({37}, 6));
       b.node("com.microsoft::BiasGelu", 1, {"x", "bias"}, {"y"});
     }},
    {"Attention",
     {1, 2, 70, 19},
     [](GraphBuilder& b) {
       b.weight<float>("mask", BP_DTYPE_FLOAT, {70, 70}, noise({70, 70}, 7));
       b.node("Attention", 23, {"x", "x", "x", "mask"}, {"y"}, BP_DTYPE_FLOAT, {{"is_causal", int64_t{1}}});
     }},
};

class VectorLoops : public ::testing::TestWithParam<Case> {};

Outcome run(const Case& test, bool reference, const std::string& threads) {
  setenv("BACKPLANE_CPU_REFERENCE", reference ? "1" : "0", 1);
  Plugin plugin(threads);
  GraphBuilder graph;
  graph.input("x", BP_DTYPE_FLOAT, test.input);
  test.build(graph);
  graph.output("y");
  Compiled program(plugin, graph.graph());
  if (program.status != BP_OK) return {program.status, program.text, BP_NO_NODE, {}};
  return program.run({HostTensor::of(BP_DTYPE_FLOAT, test.input, noise(test.input, 99))});
}

TEST_P(VectorLoops, GiveWhatTheDefinitionGives) {
  const Outcome expected = run(GetParam(), true, "1");
  ASSERT_EQ(expected.status, BP_OK) << expected.text;
  for (const char* threads : {"1", "2"}) {
    const Outcome seen = run(GetParam(), false, threads);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    ASSERT_EQ(seen.outputs[0].extents, expected.outputs[0].extents);
    const Floats a = seen.outputs[0].as<float>(), b = expected.outputs[0].as<float>();
    float largest = 0;
    for (float value : b) largest = std::max(largest, std::fabs(value));
    ASSERT_GT(largest, 0);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f * largest) << "[" << i << "]";
  }
}

// Formulas that clamp their argument must still preserve NaN and be right at infinity.
TEST(Activations, KeepWhatIsNoNumberAndLimits) {
  struct Activation {
    const char* op;
    uint32_t version;
    double (*formula)(double);
  };
  constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;
  const Activation activations[] = {
      {"Relu", 14, [](double x) { return x < 0 ? 0 : x; }},
      {"LeakyRelu", 16, [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Elu", 22, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Selu", 22, [](double x) { return kSeluGamma * (x > 0 ? x : kSeluAlpha * std::expm1(x)); }},
      {"Celu", 12, [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"Sigmoid", 13, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", 13, [](double x) { return std::tanh(x); }},
      {"Exp", 13, [](double x) { return std::exp(x); }},
      {"Erf", 13, [](double x) { return std::erf(x); }},
      {"Softplus", 22, [](double x) { return std::log1p(std::exp(x)); }},
      {"HardSigmoid", 22, [](double x) { return x != x ? x : std::fmax(0, std::fmin(1, 0.2 * x + 0.5)); }},
      {"HardSwish", 22, [](double x) { return x * (x != x ? x : std::fmax(0, std::fmin(1, x / 6 + 0.5))); }},
      {"Gelu", 20, [](double x) { return x / 2 * (1 + std::erf(x * std::sqrt(0.5))); }},
      {"Mish", 22, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  Floats x;
  for (float value : {kNaN, kInfinity, -kInfinity, 0.0f, 0.5f, -0.5f, 3.0f, -3.0f, 40.0f, -40.0f, 1e-6f, -1e-6f})
    x.insert(x.end(), 3, value);  // 36: whole vectors and a remainder
  for (const Activation& activation : activations) {
    for (const char* reference : {"0", "1"}) {
      setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
      Plugin plugin("1");
      GraphBuilder graph;
      graph.input("x", BP_DTYPE_FLOAT, {36});
      graph.node(activation.op, activation.version, {"x"}, {"y"}, BP_DTYPE_FLOAT).output("y");
      Compiled program(plugin, graph.graph());
      ASSERT_EQ(program.status, BP_OK) << program.text;
      const Outcome outcome = program.run({HostTensor::of(BP_DTYPE_FLOAT, {36}, x)});
      ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
      const Floats y = outcome.outputs[0].as<float>();
      for (size_t i = 0; i < x.size(); ++i) {
        const auto wanted = static_cast<float>(activation.formula(static_cast<double>(x[i])));
        if (std::isnan(wanted) && !std::isnan(x[i])) continue;  // such as 0 · infinity
        if (std::isnan(wanted) || std::isinf(wanted))
          EXPECT_EQ(std::isnan(y[i]) ? 0 : y[i], std::isnan(wanted) ? 0 : wanted)
              << activation.op << "(" << x[i] << ")";
        else
          EXPECT_NEAR(y[i], wanted, 2e-6 * std::fmax(1, std::fabs(wanted))) << activation.op << "(" << x[i] << ")";
        EXPECT_EQ(std::isnan(y[i]), std::isnan(wanted)) << activation.op << "(" << x[i] << "), reference " << reference;
      }
    }
  }
}

// For all but the first x, e^-x overflows in fp32, but the results are subnormal numbers.
TEST(Sigmoid, IsNotZeroBeforeItUnderflows) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  Plugin plugin("1");
  GraphBuilder graph;
  graph.input("x", BP_DTYPE_FLOAT, {36}).node("Sigmoid", 13, {"x"}, {"y"}).output("y");
  Compiled program(plugin, graph.graph());
  for (const float x : {-88.5f, -89.0f, -95.0f, -103.0f}) {
    const Outcome outcome = program.run({HostTensor::of(BP_DTYPE_FLOAT, {36}, Floats(36, x))});
    ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
    const double wanted = std::exp(static_cast<double>(x));
    for (const float y : outcome.outputs[0].as<float>())
      EXPECT_NEAR(static_cast<double>(y), wanted, 2e-6 * wanted + 0x1p-149) << x;
  }
}

// Beyond the last number whose tanh differs from ±1 by half an ulp, and at infinity.
TEST(Tanh, IsOneFarFromZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  Plugin plugin("1");
  GraphBuilder graph;
  graph.input("x", BP_DTYPE_FLOAT, {36}).node("Tanh", 13, {"x"}, {"y"}).output("y");
  Compiled program(plugin, graph.graph());
  for (float x : {9.02f, 20.0f, 1e30f, kInfinity}) {
    for (float sign : {1.0f, -1.0f}) {
      const Outcome outcome = program.run({HostTensor::of(BP_DTYPE_FLOAT, {36}, Floats(36, sign * x))});
      ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
      EXPECT_EQ(outcome.outputs[0].as<float>(), Floats(36, sign)) << "tanh(" << sign * x << ")";
    }
  }
}

// The distance of y from `wanted` in units of the last place of `wanted` as a float.
double ulps(float y, double wanted) {
  int exponent = 0;
  std::frexp(wanted, &exponent);
  return std::fabs(static_cast<double>(y) - wanted) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// Small and large numbers, multiples of pi / 4, those beyond a formula's range next to others, infinity, NaN and both
// zeros.
TEST(Formulas, AreRightToTheLastPlaces) {
  struct Function {
    const char* op;
    double (*formula)(double);
    double error;  // in ulp
  };
  const Function functions[] = {
      {"Sin", std::sin, 2}, {"Cos", std::cos, 2}, {"Atan", std::atan, 3}, {"Log", std::log, 1}};
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  Floats x = {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-41f, 131072.0f, -131072.0f, 0.41421356f, 2.4142137f, 1e10f};
  for (int i = -40; i < 40; ++i) x.push_back(static_cast<float>(i * 0.78539816339744831));
  for (int i = 1; i < 3000; ++i) x.push_back(static_cast<float>(i * i) * (i % 2 == 0 ? 0.013f : -0.011f));
  x.resize(4096, 1.5f);
  for (float value : {kNaN, kInfinity, -kInfinity, 131073.0f, -3e38f, 0.7f}) x.insert(x.end(), 3, value);
  const auto count = static_cast<int64_t>(x.size());
  for (const Function& function : functions) {
    setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
    Plugin plugin("1");
    GraphBuilder graph;
    graph.input("x", BP_DTYPE_FLOAT, {count}).node(function.op, 22, {"x"}, {"y"}).output("y");
    Compiled program(plugin, graph.graph());
    const Outcome outcome = program.run({HostTensor::of(BP_DTYPE_FLOAT, {count}, x)});
    ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
    const Floats y = outcome.outputs[0].as<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = function.formula(static_cast<double>(x[i]));
      EXPECT_EQ(std::isnan(y[i]), std::isnan(wanted)) << function.op << "(" << x[i] << ")";
      if (std::isnan(wanted)) continue;
      if (std::isinf(wanted)) {
        EXPECT_EQ(y[i], static_cast<float>(wanted)) << function.op << "(" << x[i] << ")";
        continue;
      }
      EXPECT_LE(ulps(y[i], wanted), function.error) << function.op << "(" << x[i] << ") is " << y[i];
      EXPECT_EQ(std::signbit(y[i]), std::signbit(wanted)) << function.op << "(" << x[i] << ") is " << y[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, VectorLoops, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backplane::cpu::testing::vector_loops
