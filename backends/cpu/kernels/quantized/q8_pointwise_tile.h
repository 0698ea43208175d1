// SPDX-License-Identifier: Apache-2.0
// The innermost part of a product of 8-bit quantized values whose results are quantized values: some places with 64
// output channels, whose 32-bit sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// What is added to results: they become quantized values, then numbers, and their sum with other quantized values
// becomes quantized values again, each operation rounded as by itself.
struct PointwiseSum {
  float low, high;  // of a result before the sum, in its steps
  float scale;      // of such a step
  float other_zero, other_scale;
  float result_scale, inverse;  // of the sum, and 1 / result_scale
};

struct PointwiseTile {
  const uint8_t* x;  // signed quantized values count as unsigned ones, moved up by 128
  int64_t x_place;   // bytes from one place to the next
  int64_t groups;    // of four input channels
  // In the order of `lane_channel`: what a sum begins with (32 bits), its scale and what is added then (floats); then
  // for each group the weights of all output channels, four signed bytes each.
  const std::byte* pack;
  uint8_t* y;
  int64_t y_place;
  int32_t zero, low, high;  // of the result, which is at its limits, low and high, where it is beyond
  bool result_signed;
  const PointwiseSum* sum;  // or null; the members above are then the sum's
  const uint8_t* other;     // what is added; lies like y, and may be y
  const std::byte* ahead;   // read soon: `ahead_step` bytes for each group
  int64_t ahead_step;
};

inline constexpr int64_t kPointwiseChannels = 64;
inline constexpr int64_t kMaxPointwisePlaces = 7;

using PointwiseKernel = void (*)(const PointwiseTile& tile);

// For 1 to 7 places, with or without a sum, of signed or unsigned quantized values; null where runtime/processor.h
// has no products of four quantized values at once.
PointwiseKernel pointwise_kernel(int64_t places, bool adds, bool is_signed);

}  // namespace backplane::cpu
