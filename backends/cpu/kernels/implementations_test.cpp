// SPDX-License-Identifier: Apache-2.0
// Forces each implementation by name and compares its results with those of reference mode, or of another
// implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "testing/graph_builder.h"
#include "testing/noise.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::implementations {
namespace {

struct Case {
  std::string family, name;
  Extents x;  // extents of the input "x"; the output is "y"
  std::function<void(GraphBuilder&)> build;
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  double tolerance = 1e-4;
  bool needs_avx512 = false;  // with VNNI (products of 8-bit integers) or AMX; without them, the case is skipped
  uint32_t compute_types = 0;
  std::string shape = {};    // names the case where an implementation has several
  std::string against = {};  // the implementation to compare with; empty: reference mode
};
std::string name_of(const Case& test) {
  return test.family + "_" + test.name + (test.shape.empty() ? "" : "_" + test.shape);
}
void PrintTo(const Case& test, std::ostream* out) {
  *out << test.family << "=" << test.name;
}

void weight(GraphBuilder& g, const std::string& name, const Extents& extents) {
  g.weight<float>(name, BP_DTYPE_FLOAT, extents, noise(product(extents), 7));
}

std::function<void(GraphBuilder&)> conv(const Extents& weights, int64_t pad, int64_t column_pad = -1,
                                        int64_t stride = 1, int64_t groups = 1) {
  return [=](GraphBuilder& g) {
    const int64_t columns = column_pad < 0 ? pad : column_pad;
    weight(g, "w", weights);
    weight(g, "b", {weights[0]});
    g.node("Conv", 22, {"x", "w", "b"}, {"c"}, BP_DTYPE_FLOAT,
           {{"group", groups}, {"pads", Extents{pad, columns, pad, columns}}, {"strides", Extents{1, stride}}});
    g.node("Relu", 14, {"c"}, {"y"});
  };
}

// A convolution, then the addition of a tensor, then an activation that is not 0 at 0.
void conv_with_more(GraphBuilder& g) {
  weight(g, "w", {48, 32, 3, 3});
  weight(g, "v", {48, 32, 1, 1});
  g.node("Conv", 22, {"x", "w"}, {"c"}, BP_DTYPE_FLOAT, {{"pads", Extents{0, 2, 3, 1}}});
  g.node("Conv", 22, {"x", "v"}, {"d"}, BP_DTYPE_FLOAT, {{"pads", Extents{0, 1, 1, 0}}});
  g.node("Add", 14, {"c", "d"}, {"s"});
  g.node("HardSigmoid", 22, {"s"}, {"y"}, BP_DTYPE_FLOAT, {{"alpha", 0.2f}, {"beta", 0.5f}});
}

std::function<void(GraphBuilder&)> matmul(const Extents& b, bp_dtype_t dtype = BP_DTYPE_FLOAT, bool relu = false) {
  return [=](GraphBuilder& g) {
    if (dtype == BP_DTYPE_FLOAT)
      weight(g, "b", b);
    else
      g.weight<double>("b", dtype, b, std::vector<double>(static_cast<size_t>(product(b)), 0.5));
    g.node("MatMul", 13, {"x", "b"}, {relu ? "p" : "y"}, dtype);
    if (relu) g.node("Relu", 14, {"p"}, {"y"});
  };
}

// A product whose second operand is an input of the model, so that it is not known before the run.
void square(GraphBuilder& g) {
  g.node("MatMul", 13, {"x", "x"}, {"y"});
}

void gemm_of(GraphBuilder& g, int64_t columns) {
  weight(g, "b", {24, columns});
  weight(g, "c", {columns});
  g.node("Gemm", 13, {"x", "b", "c"}, {"s"});
  g.node("Relu", 14, {"s"}, {"y"});
}
void gemm(GraphBuilder& g) {
  gemm_of(g, 32);
}
void ragged_gemm(GraphBuilder& g) {
  gemm_of(g, 45);
}

std::function<void(GraphBuilder&)> pool(const std::string& op_type, bool after_conv) {
  return [=](GraphBuilder& g) {
    if (after_conv) {
      weight(g, "w", {32, 32, 3, 3});
      g.node("Conv", 22, {"x", "w"}, {"c"}, BP_DTYPE_FLOAT, {{"pads", Extents{1, 1, 1, 1}}});
    }
    g.node(op_type, 22, {after_conv ? "c" : "x"}, {"y"}, BP_DTYPE_FLOAT,
           {{"kernel_shape", Extents{3, 3}}, {"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{2, 2}}});
  };
}

// A Conv between DequantizeLinear and QuantizeLinear; "x" and "y" are fp32.
std::function<void(GraphBuilder&)> q8(const Extents& weights, int64_t groups, int64_t pad, int64_t stride) {
  return [=](GraphBuilder& g) {
    g.weight<float>("scale", BP_DTYPE_FLOAT, {}, {0.02f});
    g.weight<uint8_t>("zero", BP_DTYPE_UINT8, {}, {128});
    g.weight<float>("result_scale", BP_DTYPE_FLOAT, {}, {0.1f});
    g.weight<float>("weight_scale", BP_DTYPE_FLOAT, {}, {0.01f});
    g.weight<int8_t>("weight_zero", BP_DTYPE_INT8, {}, {0});
    std::vector<int8_t> values;
    for (float v : noise(product(weights), 3)) values.push_back(static_cast<int8_t>(v * 100));
    g.weight<int8_t>("w", BP_DTYPE_INT8, weights, values);
    g.node("QuantizeLinear", 13, {"x", "scale", "zero"}, {"xq"}, BP_DTYPE_UINT8);
    g.node("DequantizeLinear", 13, {"xq", "scale", "zero"}, {"xd"});
    g.node("DequantizeLinear", 13, {"w", "weight_scale", "weight_zero"}, {"wd"});
    g.type("xd", BP_DTYPE_FLOAT, {1, weights[1] * groups, 8, 8});
    g.node("Conv", 22, {"xd", "wd"}, {"c"}, BP_DTYPE_FLOAT,
           {{"group", groups}, {"pads", Extents{pad, pad, pad, pad}}, {"strides", Extents{stride, stride}}});
    g.node("QuantizeLinear", 13, {"c", "result_scale", "zero"}, {"yq"}, BP_DTYPE_UINT8);
    g.node("DequantizeLinear", 13, {"yq", "result_scale", "zero"}, {"y"});
  };
}

std::function<void(GraphBuilder&)> einsum(const std::string& equation, const Extents& b) {
  return [=](GraphBuilder& g) {
    if (!b.empty()) weight(g, "b", b);
    g.node("Einsum", 12, b.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "b"}, {"y"},
           BP_DTYPE_FLOAT, {{"equation", equation}});
  };
}

void top_five(GraphBuilder& g) {
  g.weight<int64_t>("k", BP_DTYPE_INT64, {1}, {5});
  g.node("TopK", 11, {"x", "k"}, {"y"});
}

void layer_norm(GraphBuilder& g) {
  weight(g, "scale", {32});
  weight(g, "bias", {32});
  g.node("LayerNormalization", 17, {"x", "scale", "bias"}, {"y"});
}

void lstm(GraphBuilder& g) {
  weight(g, "w", {1, 16, 3});
  weight(g, "r", {1, 16, 4});
  g.node("LSTM", 22, {"x", "w", "r"}, {"y"}, BP_DTYPE_FLOAT, {{"hidden_size", int64_t{4}}});
}

// A case of a further shape.
Case shaped(std::string shape, Case test) {
  test.shape = std::move(shape);
  return test;
}

// Case of a shape for which the reference takes long. It is compared with another implementation, which has its own
// case.
Case large(std::string shape, Case test, std::string against) {
  test.against = std::move(against);
  return shaped(std::move(shape), std::move(test));
}

std::vector<Case> all_cases() {
  return {
      // Transforms that exceed the caches: the image is cut into strips.
      large("strips", {"conv", "winograd", {1, 64, 512, 128}, conv({16, 64, 3, 3}, 1)}, "tiled"),
      large("padding", {"conv", "winograd", {1, 64, 512, 128}, conv({16, 64, 3, 3}, 300, 1)}, "tiled"),
      // Windows that reach far outside the image, and channels that fill half a vector.
      shaped("margins", {"conv", "tiled", {1, 12, 9, 20}, conv({20, 12, 3, 9}, 1, 6)}),
      shaped("stride", {"conv", "tiled", {2, 12, 7, 31}, conv({20, 12, 3, 7}, 1, 4, 5)}),
      shaped("narrow", {"conv", "tiled", {1, 12, 3, 4}, conv({20, 12, 2, 8}, 2, 2, 7)}),
      shaped("column", {"conv", "tiled", {2, 16, 40, 1}, conv({32, 16, 5, 1}, 2, 0)}),
      shaped("ragged", {"matmul", "tiled", {20, 24}, matmul({24, 45}, BP_DTYPE_FLOAT, true)}),
      shaped("ragged", {"gemm", "tiled", {20, 24}, ragged_gemm}),
      {"conv", "winograd", {1, 32, 16, 16}, conv({32, 32, 3, 3}, 1)},
      {"conv", "winograd_8", {1, 32, 16, 16}, conv({32, 32, 3, 3}, 1)},
      shaped("edges", {"conv", "winograd_8", {2, 32, 13, 11}, conv({48, 32, 3, 3}, 1)}),
      shaped("padding", {"conv", "winograd_8", {1, 32, 5, 9}, conv({32, 32, 3, 3}, 9, 30)}),
      shaped("column", {"conv", "winograd_8", {1, 32, 200, 1}, conv({32, 32, 3, 3}, 1)}),
      shaped("added", {"conv", "winograd_8", {2, 32, 13, 11}, conv_with_more}),
      large("strips", {"conv", "winograd_8", {1, 64, 300, 128}, conv({48, 64, 3, 3}, 1)}, "tiled"),
      {"conv", "tiled", {1, 32, 16, 16}, conv({32, 32, 3, 3}, 1)},
      shaped("rows", {"conv", "depthwise", {2, 19, 9, 30}, conv({19, 1, 7, 31}, 5, 20, 2, 19)}),
      {"conv", "depthwise", {2, 45, 1, 100}, conv({45, 1, 1, 31}, 0, 15, 1, 45)},
      shaped("stride", {"conv", "depthwise", {1, 19, 3, 50}, conv({19, 1, 1, 8}, 0, 3, 3, 19)}),
      shaped("narrow", {"conv", "depthwise", {1, 16, 2, 3}, conv({16, 1, 1, 20}, 0, 18, 2, 16)}),
      {"conv", "onednn", {1, 32, 16, 16}, conv({32, 32, 3, 3}, 1)},
      {"conv", "direct", {1, 32, 16, 16}, conv({32, 32, 3, 3}, 1)},
      {"matmul", "bf16", {20, 24}, matmul({24, 32}, BP_DTYPE_FLOAT, true), BP_DTYPE_FLOAT, 0.02, true, BP_COMPUTE_BF16},
      {"matmul", "tiled", {20, 24}, matmul({24, 32}, BP_DTYPE_FLOAT, true)},
      {"matmul", "onednn", {20, 24}, matmul({24, 32}, BP_DTYPE_FLOAT, true)},
      {"matmul", "gemv", {2, 24}, matmul({24, 32})},
      {"matmul", "sgemm", {20, 24}, matmul({24, 32})},
      {"matmul", "sgemm_batch", {3, 16, 16}, square},
      {"matmul", "wide", {20, 24}, matmul({24, 32}, BP_DTYPE_DOUBLE), BP_DTYPE_DOUBLE},
      {"matmul", "direct", {20, 24}, matmul({24, 32}, BP_DTYPE_FLOAT, true)},
      {"gemm", "bf16", {20, 24}, gemm, BP_DTYPE_FLOAT, 0.02, true, BP_COMPUTE_BF16},
      {"gemm", "tiled", {20, 24}, gemm},
      {"gemm", "sgemm", {20, 24}, gemm},
      {"gemm", "direct", {20, 24}, gemm},
      {"pool", "blocked", {1, 32, 16, 16}, pool("MaxPool", true)},
      {"pool", "dense", {1, 32, 16, 16}, pool("AveragePool", false)},
      {"pool", "direct", {1, 32, 16, 16}, pool("MaxPool", true)},
      // The tolerance is one quantization step of the result: a sum midway between two steps may be rounded up or down.
      {"q8", "depthwise", {1, 128, 8, 8}, q8({128, 1, 3, 3}, 128, 1, 1), BP_DTYPE_FLOAT, 0.101, true},
      {"q8", "amx", {1, 128, 8, 8}, q8({72, 128, 1, 1}, 1, 0, 1), BP_DTYPE_FLOAT, 0.101, true},
      {"q8", "pointwise", {1, 128, 8, 8}, q8({128, 128, 1, 1}, 1, 0, 1), BP_DTYPE_FLOAT, 0.101, true},
      {"q8", "onednn", {1, 128, 8, 8}, q8({32, 128, 3, 3}, 1, 1, 1), BP_DTYPE_FLOAT, 0.101, true},
      {"q8", "integer", {1, 128, 8, 8}, q8({32, 128, 3, 3}, 1, 1, 1), BP_DTYPE_FLOAT, 0.101, true},
      shaped("odd", {"q8", "integer", {1, 7, 8, 8}, q8({21, 7, 3, 3}, 1, 1, 2), BP_DTYPE_FLOAT, 0.101, true}),
      shaped("strided", {"q8", "integer", {1, 36, 8, 8}, q8({20, 36, 1, 1}, 1, 0, 2), BP_DTYPE_FLOAT, 0.101, true}),
      {"q8", "direct", {1, 128, 8, 8}, q8({32, 128, 3, 3}, 1, 1, 1), BP_DTYPE_FLOAT, 0.101, true},
      {"einsum", "copy", {5, 6, 7}, einsum("aij->jai", {})},
      {"einsum", "products", {5, 6}, einsum("ij,jk->ki", {6, 7})},
      {"einsum", "direct", {5, 6}, einsum("ij,jk->ki", {6, 7})},
      {"topk", "rows", {4, 200}, top_five},
      {"topk", "direct", {4, 200}, top_five},
      {"layernorm", "rows", {6, 32}, layer_norm},
      {"layernorm", "direct", {6, 32}, layer_norm},
      {"recurrent", "steps", {5, 2, 3}, lstm},
      {"recurrent", "direct", {5, 2, 3}, lstm},
  };
}

class Implementations : public ::testing::TestWithParam<Case> {};

TEST_P(Implementations, AskedForByNameIsTakenAndRight) {
  const Case& test = GetParam();
  GraphBuilder g;
  g.input("x", test.dtype, test.x);
  test.build(g);
  g.output("y");
  const std::vector<float> x = noise(product(test.x), 1);
  const HostTensor input = test.dtype == BP_DTYPE_DOUBLE
                               ? HostTensor::of(test.dtype, test.x, std::vector<double>(x.begin(), x.end()))
                               : HostTensor::of(test.dtype, test.x, x);

  Plugin forced("2", {{"implementation", test.family + "=" + test.name}, {"reference", "0"}});
  ASSERT_EQ(forced.status, BP_OK) << forced.error;
  Compiled compiled(forced, g.graph(), test.compute_types);
  const auto is_logged = [&](const std::string& text) {
    return std::any_of(forced.log.begin(), forced.log.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  // Extents are known, so the implementation was chosen when the graph was compiled.
  const bool reported = is_logged(": " + test.family + "=" + test.name);
  if (!reported &&
      (test.needs_avx512 || test.name.starts_with("winograd") || test.name == "tiled" || test.name == "blocked"))
    GTEST_SKIP() << "this processor does not support the implementation";
  if (!reported && is_logged("onednn: its tensors cannot be blocked"))
    GTEST_SKIP() << "this processor has no blocked format";
#ifndef __x86_64__  // for which oneDNN compiles its kernels itself
  if (!reported && is_logged("onednn: oneDNN has no fast implementation"))
    GTEST_SKIP() << "this oneDNN has no fast implementation for this processor";
#endif

  const Outcome outcome = compiled.run({input});
  ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
  using Options = std::map<std::string, std::string>;
  Plugin reference("2", test.against.empty()
                            ? Options{{"reference", "1"}}
                            : Options{{"implementation", test.family + "=" + test.against}, {"reference", "0"}});
  const Outcome expected = Compiled(reference, g.graph()).run({input});
  ASSERT_EQ(expected.status, BP_OK) << expected.text;
  EXPECT_TRUE(reported) << ::testing::PrintToString(forced.log);

  const auto compare = [&](const auto& got, const auto& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], test.tolerance * (1 + std::fabs(wanted[i])));
  };
  if (test.dtype == BP_DTYPE_DOUBLE)
    compare(outcome.outputs[0].as<double>(), expected.outputs[0].as<double>());
  else
    compare(outcome.outputs[0].as<float>(), expected.outputs[0].as<float>());
}

INSTANTIATE_TEST_SUITE_P(All, Implementations, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return name_of(info.param); });

// A Conv with one set of weights is planned for images of one column, whose taps are in another order, and for others.
TEST(Implementations, OfAConvForSeveralWidthsPackTheWeightsForEach) {
  GraphBuilder g;
  g.input("x", BP_DTYPE_FLOAT, {1, 32, 61, -1});
  weight(g, "w", {64, 32, 5, 1});
  g.node("Conv", 22, {"x", "w"}, {"y"}, BP_DTYPE_FLOAT, {{"strides", Extents{4, 1}}}).output("y");
  Plugin fast("2", {{"reference", "0"}}), plain("2", {{"reference", "1"}});
  Compiled program(fast, g.graph()), reference(plain, g.graph());
  for (const int64_t width : {9, 1, 9, 1}) {
    const Extents extents{1, 32, 61, width};
    const HostTensor x = HostTensor::of(BP_DTYPE_FLOAT, extents, noise(product(extents), 1));
    const Outcome got = program.run({x}), wanted = reference.run({x});
    ASSERT_EQ(got.status, BP_OK) << got.text;
    const std::vector<float> a = got.outputs[0].as<float>(), b = wanted.outputs[0].as<float>();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << width << " [" << i << "]";
  }
}

// A Conv of three dimensions whose image has one plane, and the result more.
TEST(Implementations, OfAConvPadADepthOfOne) {
  GraphBuilder g;
  g.input("x", BP_DTYPE_FLOAT, {1, 16, 1, 8, 8});
  weight(g, "w", {16, 16, 1, 3, 3});
  g.node("Conv", 22, {"x", "w"}, {"y"}, BP_DTYPE_FLOAT, {{"pads", Extents{1, 1, 1, 1, 1, 1}}}).output("y");
  std::vector<std::vector<float>> results;
  for (const char* reference : {"1", "0"}) {
    Plugin plugin("2", {{"reference", reference}});
    const Outcome run =
        Compiled(plugin, g.graph()).run({HostTensor::of(BP_DTYPE_FLOAT, {1, 16, 1, 8, 8}, noise(1024, 1))});
    ASSERT_EQ(run.status, BP_OK) << run.text;
    results.push_back(run.outputs[0].as<float>());
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[0][i], results[1][i], 1e-4);
}

TEST(Implementations, UnknownNamesAreRefusedWithThoseThatExist) {
  const Plugin family("2", {{"implementation", "pol=direct"}});
  EXPECT_EQ(family.status, BP_INVALID_ARGUMENT);
  EXPECT_THAT(family.error, ::testing::HasSubstr(
                                "the families are conv, einsum, gemm, layernorm, matmul, pool, q8, recurrent, topk"));
  const Plugin name("2", {{"implementation", "pool=fast"}});
  EXPECT_EQ(name.status, BP_INVALID_ARGUMENT);
  EXPECT_THAT(name.error, ::testing::HasSubstr("the implementations of pool are blocked, dense, direct"));
}

// Products with a known matrix that fill whole or partial tiles, some with fused operators after them.
struct Bf16Product {
  const char* name;
  int64_t m, n, k;
  bool gemm;  // a Gemm with a bias and transB; otherwise a MatMul, then Add of a bias, Relu, and Add of another tensor
};
void PrintTo(const Bf16Product& product, std::ostream* out) {
  *out << product.name;
}
class Bf16Products : public ::testing::TestWithParam<Bf16Product> {};

// Operands that bf16 represents exactly are not rounded, so only the order of the sums differs from the reference.
TEST_P(Bf16Products, OfNumbersThatFitAreAsExactAsThoseInFp32) {
  const Bf16Product& t = GetParam();
  const auto small = [](int64_t count, uint32_t seed) {
    std::vector<float> values;
    for (float x : noise(count, seed)) values.push_back(std::nearbyint(x * 64) / 64);
    return values;
  };
  std::vector<std::vector<float>> results;
  for (const char* reference : {"1", "0"}) {
    GraphBuilder g;
    g.input("x", BP_DTYPE_FLOAT, {t.m, t.k}).input("r", BP_DTYPE_FLOAT, {t.m, t.n});
    g.weight<float>("b", BP_DTYPE_FLOAT, t.gemm ? Extents{t.n, t.k} : Extents{t.k, t.n}, small(t.n * t.k, 7));
    g.weight<float>("c", BP_DTYPE_FLOAT, {t.n}, small(t.n, 8));
    if (t.gemm) {
      g.node("Gemm", 13, {"x", "b", "c"}, {"y"}, BP_DTYPE_FLOAT, {{"transB", int64_t{1}}});
    } else {
      g.node("MatMul", 13, {"x", "b"}, {"p"}).type("p", BP_DTYPE_FLOAT, {t.m, t.n});
      g.node("Add", 14, {"p", "c"}, {"s"}).type("s", BP_DTYPE_FLOAT, {t.m, t.n});
      g.node("Relu", 14, {"s"}, {"q"}).type("q", BP_DTYPE_FLOAT, {t.m, t.n});
      g.node("Add", 14, {"q", "r"}, {"y"}).type("y", BP_DTYPE_FLOAT, {t.m, t.n});
    }
    g.output("y");
    Plugin plugin("2", {{"reference", reference}});
    const Outcome outcome = Compiled(plugin, g.graph(), BP_COMPUTE_BF16)
                                .run({HostTensor::of(BP_DTYPE_FLOAT, {t.m, t.k}, small(t.m * t.k, 1)),
                                      HostTensor::of(BP_DTYPE_FLOAT, {t.m, t.n}, small(t.m * t.n, 2))});
    ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
    results.push_back(outcome.outputs[0].as<float>());
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[1][i], results[0][i], 1e-4) << "[" << i << "]";
}

constexpr Bf16Product kBf16Products[] = {
    {"FewRows", 5, 40, 70, false},     {"OneTile", 16, 16, 32, true},      {"OddRows", 33, 65, 31, false},
    {"ManyRows", 300, 24, 129, false}, {"ManyColumns", 17, 530, 65, true}, {"FewColumns", 40, 3, 200, true},
    {"OneInput", 50, 50, 1, false},
};
INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Products, ::testing::ValuesIn(kBf16Products),
                         [](const auto& info) { return info.param.name; });

// The integer sums are exact, and both implementations convert them to quantized values with the same arithmetic.
TEST(Implementations, OfQuantizedProductsAgreeInEachBit) {
  for (const Extents& x : {Extents{1, 128, 8, 8}, Extents{2, 68, 15, 9}, Extents{1, 128, 1, 1}}) {
    std::vector<std::vector<float>> results;
    for (const char* name : {"q8=amx", "q8=pointwise"}) {
      GraphBuilder g;
      g.input("x", BP_DTYPE_FLOAT, x);
      q8({120, x[1], 1, 1}, 1, 0, 1)(g);
      g.output("y");
      Plugin plugin("2", {{"implementation", name}, {"reference", "0"}});
      const Outcome outcome =
          Compiled(plugin, g.graph()).run({HostTensor::of(BP_DTYPE_FLOAT, x, noise(product(x), 1))});
      ASSERT_EQ(outcome.status, BP_OK) << outcome.text;
      results.push_back(outcome.outputs[0].as<float>());
    }
    EXPECT_EQ(results[0], results[1]) << ::testing::PrintToString(x);
  }
}

#if defined(__x86_64__)
// Whether the calling thread has AMX's tile registers in use; false if the processor lacks them.
bool uses_tile_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kReportsUse = 1u << 2, kTiles = 1u << 24;
  if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) == 0 || (a & kReportsUse) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
  return (a >> 17 & 3) != 0;
}

TEST(Implementations, LeaveNoTileRegistersInUse) {
  for (const Extents& weights : {Extents{72, 128, 1, 1}, Extents{72, 128, 3, 3}}) {
    GraphBuilder g;
    g.input("x", BP_DTYPE_FLOAT, {1, 128, 8, 8});
    q8(weights, 1, weights[2] / 2, 1)(g);
    g.output("y");
    Plugin plugin("1", {{"reference", "0"}});
    Compiled(plugin, g.graph()).run({HostTensor::of(BP_DTYPE_FLOAT, {1, 128, 8, 8}, noise(128 * 64, 1))});
    EXPECT_FALSE(uses_tile_registers()) << ::testing::PrintToString(weights);
  }
}
#endif

// Fails if a list has an implementation without a case.
TEST(Implementations, EachHasACase) {
  for (const char* family : {"conv", "matmul", "gemm", "pool", "q8", "einsum", "topk", "layernorm", "recurrent"}) {
    const Plugin plugin("2", {{"implementation", std::string(family) + "=?"}});
    std::string wanted = std::string("the implementations of ") + family + " are ";
    bool first = true;
    for (const Case& test : all_cases()) {
      if (test.family != family || !test.shape.empty()) continue;
      wanted += (first ? "" : ", ") + test.name;
      first = false;
    }
    EXPECT_TRUE(plugin.error.ends_with(wanted)) << plugin.error << "\n" << wanted;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing::implementations
