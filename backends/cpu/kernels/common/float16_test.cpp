// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/float16.h"

#include <gtest/gtest.h>

#include <limits>

namespace backplane::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Float16, EveryHalfSurvivesFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value)))) << bits;
    else
      EXPECT_EQ(float_to_half(value), bits);
  }
}

TEST(Float16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(float_to_half(1 + 0x1p-11f), 0x3c00);      // halfway: rounds down to the even number
  EXPECT_EQ(float_to_half(1 + 3 * 0x1p-11f), 0x3c02);  // halfway: rounds up to the even number
  EXPECT_EQ(float_to_half(1 + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);  // rounds to 65504, the largest finite number
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);  // rounds to infinity
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);  // half of the smallest number: rounds to zero, which is even
  EXPECT_EQ(float_to_half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_bfloat16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1 + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Float16, EveryMinifloatCodeSurvivesFloat) {
  for (const Minifloat* format : {&kFloat8E4M3FN, &kFloat8E4M3FNUZ, &kFloat8E5M2, &kFloat8E5M2FNUZ, &kFloat4E2M1}) {
    const int patterns = 2 << (format->exponent_bits + format->mantissa_bits);
    for (int pattern = 0; pattern < patterns; ++pattern) {
      const float value = decode(*format, static_cast<uint8_t>(pattern));
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode(*format, value, false), pattern) << format->bias;
    }
  }
}

TEST(Float16, MinifloatsSaturateOrOverflow) {
  EXPECT_EQ(decode(kFloat8E4M3FN, encode(kFloat8E4M3FN, 1000, true)), 448);
  EXPECT_TRUE(std::isnan(decode(kFloat8E4M3FN, encode(kFloat8E4M3FN, 1000, false))));
  EXPECT_EQ(decode(kFloat8E5M2, encode(kFloat8E5M2, -1e6f, true)), -57344);
  EXPECT_EQ(decode(kFloat8E5M2, encode(kFloat8E5M2, -1e6f, false)), -kInfinity);
  EXPECT_EQ(decode(kFloat8E4M3FNUZ, encode(kFloat8E4M3FNUZ, kInfinity, true)), 240);
  EXPECT_EQ(encode(kFloat8E4M3FNUZ, -0.0f, true), 0);
}

}  // namespace
}  // namespace backplane::cpu
