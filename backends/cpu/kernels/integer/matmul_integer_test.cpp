// SPDX-License-Identifier: Apache-2.0
// Tests products and convolutions of 8-bit integers, alone and with the operators that follow them in dynamically
// quantized models. The expected values are computed here or in reference mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::matmul_integer {
namespace {

struct Matrices {
  const char* name;
  int64_t batch, m, n, k;
  bp_dtype_t a, b;
  bool b_known, b_in_batch;
  bool zero_each;  // a zero point for each row of A and column of B
};

class RandomBytes {
 public:
  RandomBytes(bp_dtype_t dtype, int64_t count, uint32_t seed) : dtype_(dtype) {
    for (int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      bytes_.push_back(static_cast<char>(seed >> 24));
    }
  }
  const std::string& bytes() const { return bytes_; }
  int32_t operator[](int64_t i) const {
    const char c = bytes_[static_cast<size_t>(i)];
    return dtype_ == BP_DTYPE_INT8 ? int32_t{static_cast<int8_t>(c)} : int32_t{static_cast<uint8_t>(c)};
  }

 private:
  bp_dtype_t dtype_;
  std::string bytes_;
};

void PrintTo(const Matrices& matrices, std::ostream* to) {
  *to << matrices.name;
}
class IntegerProducts : public ::testing::TestWithParam<Matrices> {};

TEST_P(IntegerProducts, AreExact) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  const Matrices& t = GetParam();
  const int64_t b_batch = t.b_in_batch ? t.batch : 1;
  const RandomBytes a(t.a, t.batch * t.m * t.k, 1), b(t.b, b_batch * t.k * t.n, 2);
  const RandomBytes a_zero(t.a, t.zero_each ? t.m : 1, 3), b_zero(t.b, t.zero_each ? t.n : 1, 4);
  std::vector<int64_t> b_extents{t.k, t.n};
  if (t.b_in_batch) b_extents.insert(b_extents.begin(), t.batch);
  std::vector<int64_t> zero_extents;
  GraphBuilder graph;
  graph.input("a", t.a, {t.batch, t.m, t.k});
  if (t.b_known)
    graph.weight_bytes("b", t.b, b_extents, b.bytes());
  else
    graph.input("b", t.b, b_extents);
  graph.weight_bytes("az", t.a, t.zero_each ? std::vector<int64_t>{t.m} : zero_extents, a_zero.bytes());
  graph.weight_bytes("bz", t.b, t.zero_each ? std::vector<int64_t>{t.n} : zero_extents, b_zero.bytes());
  graph.node("MatMulInteger", 10, {"a", "b", "az", "bz"}, {"y"}, BP_DTYPE_INT32).output("y");
  for (const char* threads : {"1", "3"}) {
    Plugin plugin(threads);
    Compiled program(plugin, graph.graph());
    std::vector<HostTensor> inputs{{t.a, {t.batch, t.m, t.k}, a.bytes()}};
    if (!t.b_known) inputs.push_back({t.b, b_extents, b.bytes()});
    const Outcome seen = program.run(inputs);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    const std::vector<int32_t> y = seen.outputs[0].as<int32_t>();
    ASSERT_EQ(static_cast<int64_t>(y.size()), t.batch * t.m * t.n);
    for (int64_t i = 0; i < t.batch * t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        int32_t sum = 0;
        for (int64_t l = 0; l < t.k; ++l)
          sum += (a[i * t.k + l] - a_zero[t.zero_each ? i % t.m : 0]) *
                 (b[(t.b_in_batch ? i / t.m * t.k * t.n : 0) + l * t.n + j] - b_zero[t.zero_each ? j : 0]);
        ASSERT_EQ(y[static_cast<size_t>(i * t.n + j)], sum) << i << ", " << j << " on " << threads;
      }
    }
  }
}

constexpr bp_dtype_t kU8 = BP_DTYPE_UINT8, kS8 = BP_DTYPE_INT8;
constexpr Matrices kMatrices[] = {
    {"OneOfEach", 1, 1, 1, 1, kU8, kS8, true, false, false},
    {"OneRow", 1, 1, 100, 70, kU8, kS8, true, false, false},
    {"OneColumn", 1, 37, 1, 9, kS8, kU8, true, false, false},
    {"FewRows", 1, 3, 75, 130, kU8, kS8, true, false, true},
    {"WholeSteps", 1, 33, 70, 128, kU8, kS8, true, false, false},
    {"ManyColumns", 1, 17, 530, 65, kS8, kS8, true, false, true},
    {"Unsigned", 1, 29, 48, 64, kU8, kU8, true, false, true},
    {"Signed", 1, 15, 33, 131, kS8, kS8, true, false, true},
    {"ManyRows", 2, 130, 50, 67, kU8, kS8, true, false, true},
    {"LongSums", 1, 5, 17, 4099, kU8, kU8, true, false, false},
    {"Batch", 3, 14, 31, 10, kS8, kU8, true, true, false},
    {"Unknown", 1, 40, 40, 40, kU8, kS8, false, false, true},
    {"UnknownBatch", 3, 9, 18, 30, kU8, kU8, false, true, false},
};
INSTANTIATE_TEST_SUITE_P(Matrices, IntegerProducts, ::testing::ValuesIn(kMatrices),
                         [](const auto& info) { return info.param.name; });

// Compares convolutions of 8-bit integers with reference mode, which follows the definition.
struct Image {
  const char* name;
  std::vector<int64_t> x, w;
  bp_dtype_t x_type, w_type;
  bool zero_each;
  Attributes attributes;
};
void PrintTo(const Image& image, std::ostream* to) {
  *to << image.name;
}
class IntegerConvolutions : public ::testing::TestWithParam<Image> {};

TEST_P(IntegerConvolutions, AreExact) {
  const Image& t = GetParam();
  auto count = [](const std::vector<int64_t>& extents) {
    int64_t product = 1;
    for (int64_t extent : extents) product *= extent;
    return product;
  };
  const RandomBytes x(t.x_type, count(t.x), 5), w(t.w_type, count(t.w), 6);
  const RandomBytes x_zero(t.x_type, 1, 7), w_zero(t.w_type, t.zero_each ? t.w[0] : 1, 8);
  auto run = [&](const char* reference, const char* threads) {
    setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
    Plugin plugin(threads);
    GraphBuilder graph;
    graph.input("x", t.x_type, t.x).weight_bytes("w", t.w_type, t.w, w.bytes());
    graph.weight_bytes("xz", t.x_type, {}, x_zero.bytes());
    graph.weight_bytes("wz", t.w_type, t.zero_each ? std::vector<int64_t>{t.w[0]} : std::vector<int64_t>{},
                       w_zero.bytes());
    graph.node("ConvInteger", 10, {"x", "w", "xz", "wz"}, {"y"}, BP_DTYPE_INT32, t.attributes).output("y");
    Compiled program(plugin, graph.graph());
    Outcome outcome = program.run({{t.x_type, t.x, x.bytes()}});
    EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
    return outcome.outputs.at(0).as<int32_t>();
  };
  const std::vector<int32_t> expected = run("1", "1");
  EXPECT_GT(std::ranges::count_if(expected, [](int32_t sum) { return sum != 0; }), 0);
  for (const char* threads : {"1", "2", "3"}) EXPECT_EQ(run("0", threads), expected) << threads;
}

const Attributes kPadded{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
const Image kImages[] = {
    {"Points", {1, 20, 9, 7}, {33, 20, 1, 1}, kU8, kS8, false, {}},
    {"PointsByTwo", {2, 6, 9, 8}, {5, 6, 1, 1}, kS8, kS8, false, {{"strides", std::vector<int64_t>{2, 2}}}},
    {"Windows", {2, 5, 12, 11}, {40, 5, 3, 3}, kU8, kU8, true, kPadded},
    {"Line", {1, 4, 50}, {17, 4, 5}, kS8, kU8, false, {{"dilations", std::vector<int64_t>{3}}}},
    {"Groups",
     {2, 12, 8, 8},
     {18, 4, 3, 3},
     kU8,
     kS8,
     true,
     {{"group", int64_t{3}}, {"pads", std::vector<int64_t>{0, 1, 2, 1}}}},
    {"EachChannel",
     {2, 19, 10, 9},
     {19, 1, 3, 3},
     kU8,
     kU8,
     true,
     {{"group", int64_t{19}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
    {"EachSignedChannel",
     {1, 32, 40, 7},
     {32, 1, 5, 1},
     kS8,
     kS8,
     false,
     {{"group", int64_t{32}}, {"strides", std::vector<int64_t>{2, 1}}}},
    {"Volume", {1, 3, 5, 6, 4}, {4, 3, 2, 3, 2}, kU8, kS8, false, {}},
};
INSTANTIATE_TEST_SUITE_P(Images, IntegerConvolutions, ::testing::ValuesIn(kImages),
                         [](const auto& info) { return info.param.name; });

// double cannot represent 2^53 + 1.
TEST(WholeNumbers, OfGemmAreExact) {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  GraphBuilder b;
  b.input("x", BP_DTYPE_INT64, {1, 2}).input("w", BP_DTYPE_INT64, {2, 1}).input("c", BP_DTYPE_INT64, {1});
  b.node("Gemm", 13, {"x", "w", "c"}, {"y"}, BP_DTYPE_INT64).output("y");
  Plugin plugin;
  Compiled program(plugin, b.graph());
  ASSERT_EQ(program.status, BP_OK) << program.text;
  const auto whole = [](std::vector<int64_t> extents, const std::vector<int64_t>& values) {
    return HostTensor::of(BP_DTYPE_INT64, std::move(extents), values);
  };
  const Outcome seen = program.run({whole({1, 2}, {kLarge, -3}), whole({2, 1}, {-1, 2}), whole({1}, {5})});
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].as<int64_t>(), std::vector<int64_t>{-kLarge - 6 + 5});
}

// A convolution and the operators around it, as in dynamically quantized models. Older models add the bias to the
// integer sums.
class DynamicConvolution : public ::testing::TestWithParam<bool> {};

TEST_P(DynamicConvolution, IsThatOfTheReference) {
  const bool adds_to_sums = GetParam();
  const std::vector<int64_t> x_extents{1, 6, 20, 13}, y_extents{1, 18, 18, 11};
  const RandomBytes w(kS8, 18 * 6 * 9, 11);
  std::vector<float> x, bias;
  for (int i = 0; i < 6 * 20 * 13; ++i) x.push_back(static_cast<float>(i * 7919 % 1000) / 300 - 1);
  for (int i = 0; i < 18; ++i) bias.push_back(static_cast<float>(i) / 6 - 1);
  auto run = [&](const char* reference) {
    setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
    Plugin plugin("2");
    GraphBuilder g;
    g.input("x", BP_DTYPE_FLOAT, x_extents).weight_bytes("w", kS8, {18, 6, 3, 3}, w.bytes());
    g.weight<float>("ws", BP_DTYPE_FLOAT, {}, {0.003f}).weight<float>("b", BP_DTYPE_FLOAT, {1, 18, 1, 1}, bias);
    g.node("DynamicQuantizeLinear", 11, {"x"}, {"q", "qs", "qz"});
    g.type("q", kU8, x_extents).type("qs", BP_DTYPE_FLOAT, {}).type("qz", kU8, {});
    g.node("Mul", 14, {"qs", "ws"}, {"s"}).type("s", BP_DTYPE_FLOAT, {});
    g.node("ConvInteger", 10, {"q", "w", "qz"}, {"i"}).type("i", BP_DTYPE_INT32, y_extents);
    if (adds_to_sums) {
      g.node("Div", 14, {"b", "s"}, {"d"}).node("Floor", 13, {"d"}, {"e"});
      g.node("Cast", 13, {"e"}, {"ib"}, BP_DTYPE_INT32, {{"to", int64_t{BP_DTYPE_INT32}}});
      g.type("ib", BP_DTYPE_INT32, {1, 18, 1, 1});
      g.node("Add", 14, {"i", "ib"}, {"ia"}).type("ia", BP_DTYPE_INT32, y_extents);
    }
    g.node("Cast", 13, {adds_to_sums ? "ia" : "i"}, {"f"}, BP_DTYPE_FLOAT, {{"to", int64_t{BP_DTYPE_FLOAT}}})
        .type("f", BP_DTYPE_FLOAT, y_extents);
    g.node("Mul", 14, {"f", "s"}, {"m"}).type("m", BP_DTYPE_FLOAT, y_extents);
    g.node("Add", 14, {"m", "b"}, {"a"}).type("a", BP_DTYPE_FLOAT, y_extents);
    g.node("Relu", 14, {"a"}, {"y"}).output("y");
    Compiled program(plugin, g.graph());
    Outcome outcome = program.run({HostTensor::of(BP_DTYPE_FLOAT, x_extents, x)});
    EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
    return outcome.outputs.at(0).as<float>();
  };
  const std::vector<float> expected = run("1"), seen = run("0");
  ASSERT_EQ(seen.size(), expected.size());
  EXPECT_GT(std::ranges::max(expected), 1);
  for (size_t i = 0; i < seen.size(); ++i)
    ASSERT_NEAR(seen[i], expected[i], 4e-6f * (1 + expected[i])) << "[" << i << "]";
}

INSTANTIATE_TEST_SUITE_P(, DynamicConvolution, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "BiasOfSums" : "Bias"; });

// A dense layer as in dynamically quantized models. The operators that follow it are fused: bias, residual, GELU.
struct Layer {
  const char* name;
  bool scale_each;
  bool unknown_columns;  // the extents of the scale are not declared, so nothing is fused
};
void PrintTo(const Layer& layer, std::ostream* to) {
  *to << layer.name;
}
class DynamicLayer : public ::testing::TestWithParam<Layer> {};

TEST_P(DynamicLayer, IsThatOfTheReference) {
  constexpr int64_t kRows = 50, kIn = 66, kOut = 40;
  const RandomBytes weights(kU8, kIn * kOut, 9);
  std::vector<float> x, scales, bias, residual;
  for (int64_t i = 0; i < kRows * kIn; ++i) x.push_back(static_cast<float>(i * 7919 % 1000) / 300 - 1);
  for (int64_t i = 0; i < kOut; ++i) bias.push_back(static_cast<float>(i) / 20 - 1);
  for (int64_t i = 0; i < kRows * kOut; ++i) residual.push_back(static_cast<float>(i * 31 % 100) / 50 - 1);
  for (int64_t i = 0; i < (GetParam().scale_each ? kOut : 1); ++i)
    scales.push_back(0.001f + 0.0001f * static_cast<float>(i));
  const std::vector<int64_t> scale_extents =
      GetParam().scale_each ? std::vector<int64_t>{kOut} : std::vector<int64_t>{1};

  auto run = [&](const char* reference) {
    setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
    Plugin plugin("2");
    GraphBuilder g;
    g.input("x", BP_DTYPE_FLOAT, {kRows, kIn}).input("r", BP_DTYPE_FLOAT, {kRows, kOut});
    g.weight_bytes("w", kU8, {kIn, kOut}, weights.bytes()).weight_bytes("wz", kU8, {}, "\x7b");
    g.weight<float>("ws", BP_DTYPE_FLOAT, scale_extents, scales).weight<float>("b", BP_DTYPE_FLOAT, {kOut}, bias);
    g.weight<float>("two", BP_DTYPE_FLOAT, {}, {std::sqrt(2.0f)}).weight<float>("one", BP_DTYPE_FLOAT, {}, {1});
    g.weight<float>("half", BP_DTYPE_FLOAT, {}, {0.5f});
    g.node("DynamicQuantizeLinear", 11, {"x"}, {"q", "qs", "qz"});
    g.type("q", kU8, {kRows, kIn}).type("qs", BP_DTYPE_FLOAT, {}).type("qz", kU8, {});
    g.node("Mul", 14, {"qs", "ws"}, {"s"});
    if (!GetParam().unknown_columns) g.type("s", BP_DTYPE_FLOAT, scale_extents);
    g.node("MatMulInteger", 10, {"q", "w", "qz", "wz"}, {"i"}).type("i", BP_DTYPE_INT32, {kRows, kOut});
    g.node("Cast", 13, {"i"}, {"f"}, BP_DTYPE_FLOAT, {{"to", int64_t{BP_DTYPE_FLOAT}}})
        .type("f", BP_DTYPE_FLOAT, {kRows, kOut});
    g.node("Mul", 14, {"f", "s"}, {"m"}).type("m", BP_DTYPE_FLOAT, {kRows, kOut});
    g.node("Add", 14, {"b", "m"}, {"a"}).type("a", BP_DTYPE_FLOAT, {kRows, kOut});
    g.node("Add", 14, {"a", "r"}, {"z"}).type("z", BP_DTYPE_FLOAT, {kRows, kOut});
    g.node("Div", 14, {"z", "two"}, {"d"}).node("Erf", 13, {"d"}, {"e"}).node("Add", 14, {"e", "one"}, {"p"});
    g.node("Mul", 14, {"z", "p"}, {"h"}).node("Mul", 14, {"h", "half"}, {"y"}).output("y");
    Compiled program(plugin, g.graph());
    Outcome outcome = program.run(
        {HostTensor::of(BP_DTYPE_FLOAT, {kRows, kIn}, x), HostTensor::of(BP_DTYPE_FLOAT, {kRows, kOut}, residual)});
    EXPECT_EQ(outcome.status, BP_OK) << outcome.text;
    return outcome.outputs.at(0).as<float>();
  };
  const std::vector<float> expected = run("1"), seen = run("0");
  ASSERT_EQ(seen.size(), expected.size());
  float least = 0, most = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_NEAR(seen[i], expected[i], 4e-6f * (1 + std::fabs(expected[i]))) << "[" << i << "]";
    least = std::min(least, seen[i]), most = std::max(most, seen[i]);
  }
  EXPECT_GT(most - least, 3);
}

constexpr Layer kLayers[] = {{"OneScale", false, false}, {"ScaleOfColumns", true, false}, {"UnknownScale", true, true}};
INSTANTIATE_TEST_SUITE_P(Layers, DynamicLayer, ::testing::ValuesIn(kLayers),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backplane::cpu::testing::matmul_integer
