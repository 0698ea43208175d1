// SPDX-License-Identifier: Apache-2.0
// Normalizations of rows: LayerNormalization and RMSNormalization with scales and biases that are broadcast to the
// input in different ways, compared with the definition in double precision; LpNormalization at the limits of fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kernels/common/float16.h"
#include "testing/graph_builder.h"
#include "testing/noise.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using Floats = std::vector<float>;

// A tensor of numbers that are exact in `dtype`.
struct Numbers {
  Extents extents;
  Floats values;
  HostTensor tensor;

  Numbers(bp_dtype_t dtype, const Extents& shape, uint32_t seed) : extents(shape), values(noise(product(shape), seed)) {
    std::vector<uint16_t> bits;
    for (float& x : values) {
      x = std::round(x * 64) / 64;
      bits.push_back(dtype == BP_DTYPE_FLOAT16 ? Half(x).bits : BFloat16(x).bits);
    }
    tensor = dtype == BP_DTYPE_FLOAT ? HostTensor::of(dtype, shape, values) : HostTensor::of(dtype, shape, bits);
  }

  // The number at element `i` of a tensor of extents `whole`, to which this one is broadcast.
  double at(int64_t i, const Extents& whole) const {
    int64_t offset = 0, stride = 1;
    for (size_t back = 1; back <= whole.size(); i /= whole[whole.size() - back], ++back) {
      if (back > extents.size()) continue;
      const int64_t extent = extents[extents.size() - back];
      if (extent != 1) offset += i % whole[whole.size() - back] * stride;
      stride *= extent;
    }
    return static_cast<double>(values[static_cast<size_t>(offset)]);
  }
};

std::vector<double> defined(const Numbers& x, const Numbers& scale, const Numbers* bias, int64_t n, bool centered) {
  std::vector<double> y;
  for (int64_t i = 0; i < product(x.extents); ++i) {
    double mean = 0, squares = 0;
    const int64_t first = i / n * n;
    for (int64_t k = first; k < first + n && centered; ++k) mean += x.at(k, x.extents) / static_cast<double>(n);
    for (int64_t k = first; k < first + n; ++k) squares += std::pow(x.at(k, x.extents) - mean, 2);
    const double deviation = std::sqrt(squares / static_cast<double>(n) + 1e-5);
    y.push_back((x.at(i, x.extents) - mean) / deviation * scale.at(i, x.extents) +
                (bias == nullptr ? 0 : bias->at(i, x.extents)));
  }
  return y;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> values;
  if (tensor.dtype == BP_DTYPE_FLOAT)
    for (float x : tensor.as<float>()) values.push_back(static_cast<double>(x));
  else
    for (uint16_t bits : tensor.as<uint16_t>())
      values.push_back(static_cast<double>(
          tensor.dtype == BP_DTYPE_FLOAT16 ? half_to_float(bits) : std::bit_cast<float>(uint32_t{bits} << 16)));
  return values;
}

struct Case {
  Extents x;
  int64_t axis;
  Extents scale, bias;
};
// Some scales and biases have as many numbers as a row has elements, but not one for each element.
const Case kCases[] = {
    {{2, 5, 7}, -1, {7}, {7}},          {{2, 5, 7}, -1, {1, 1, 7}, {1, 7}},    {{2, 3, 3}, -1, {3, 1}, {3}},
    {{2, 3, 3}, -1, {3}, {3, 1}},       {{2, 3, 3}, -1, {1, 3, 1}, {1, 3, 1}}, {{4, 2, 4}, -1, {4, 1, 1}, {4, 1, 1}},
    {{2, 3, 4}, -1, {2, 1, 4}, {3, 4}}, {{2, 3, 4}, -1, {2, 3, 4}, {}},        {{2, 3, 4}, -1, {1}, {3, 1}},
    {{6, 2, 3}, 1, {6, 1, 1}, {2, 3}},  {{6, 2, 3}, 1, {1, 2, 3}, {6, 1, 1}},  {{4, 2, 2}, 1, {2, 2}, {4, 1, 1}},
    {{2, 3}, 0, {2, 3}, {1, 3}},
};

class LayerNorm : public ::testing::TestWithParam<bp_dtype_t> {};

TEST_P(LayerNorm, BroadcastsScaleAndBias) {
  const bp_dtype_t dtype = GetParam();
  const double ulp = dtype == BP_DTYPE_FLOAT16 ? 0x1p-11 : dtype == BP_DTYPE_BFLOAT16 ? 0x1p-8 : 0x1p-20;
  for (const char* reference : {"0", "1"}) {
    setenv("BACKPLANE_CPU_REFERENCE", reference, 1);
    Plugin plugin;
    for (const Case& test : kCases) {
      for (const bool centered : {true, false}) {
        const Numbers x(dtype, test.x, 1), scale(dtype, test.scale, 2), bias(dtype, test.bias, 3);
        GraphBuilder b;
        b.input("x", dtype, test.x).input("scale", dtype, test.scale).input("bias", dtype, test.bias);
        std::vector<std::string> names{"x", "scale"};
        if (centered) names.emplace_back("bias");
        b.node(centered ? "LayerNormalization" : "RMSNormalization", centered ? 17 : 23, names, {"y"}, dtype,
               {{"axis", test.axis}});
        const Outcome seen = Compiled(plugin, b.output("y").graph()).run({x.tensor, scale.tensor, bias.tensor});
        ASSERT_EQ(seen.status, BP_OK) << seen.text;
        int64_t n = 1;
        for (size_t d = test.axis < 0 ? test.x.size() - 1 : static_cast<size_t>(test.axis); d < test.x.size(); ++d)
          n *= test.x[d];
        const std::vector<double> y = numbers(seen.outputs[0]),
                                  wanted = defined(x, scale, centered ? &bias : nullptr, n, centered);
        ASSERT_EQ(y.size(), wanted.size());
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(y[i], wanted[i], ulp * std::fabs(wanted[i]) + 1e-5)
              << "[" << i << "], scale " << ::testing::PrintToString(test.scale) << ", bias "
              << ::testing::PrintToString(test.bias) << ", reference " << reference;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LayerNorm, ::testing::Values(BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16));

// The squares of these numbers are 0 or infinite in fp32.
TEST(LpNorm, OfVerySmallAndVeryLargeNumbers) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  Plugin plugin;
  for (const float size : {1e-42f, 1e-25f, 1e25f}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {2, 2}).node("LpNormalization", 22, {"x"}, {"y"}).output("y");
    const Outcome seen =
        Compiled(plugin, b.graph()).run({HostTensor::of(BP_DTYPE_FLOAT, {2, 2}, Floats{3 * size, 4 * size, 0, 0})});
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    EXPECT_THAT(seen.outputs[0].as<float>(),
                ::testing::Pointwise(::testing::FloatNear(1e-3f), Floats{0.6f, 0.8f, 0, 0}))
        << size;
  }
}

// gamma has one number for each element of a row, so [3, 1] does not fit rows of 3.
TEST(SimplifiedLayerNorm, RefusesGammaByRows) {
  setenv("BACKPLANE_CPU_REFERENCE", "0", 1);
  Plugin plugin;
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {3, 3}).input("gamma", BP_DTYPE_FLOAT, {3, 1});
  b.node("SimplifiedLayerNormalization", 1, {"x", "gamma"}, {"y"}).output("y");
  const Outcome seen = Compiled(plugin, b.graph())
                           .run({HostTensor::of(BP_DTYPE_FLOAT, {3, 3}, noise(9, 1)),
                                 HostTensor::of(BP_DTYPE_FLOAT, {3, 1}, noise(3, 2))});
  EXPECT_EQ(seen.status, BP_TYPE_MISMATCH);
  EXPECT_THAT(seen.text, ::testing::HasSubstr("[3,1] does not fit [3,3]"));
}

}  // namespace
}  // namespace backplane::cpu::testing
