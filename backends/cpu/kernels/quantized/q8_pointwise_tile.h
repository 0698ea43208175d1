// SPDX-License-Identifier: Apache-2.0
// The innermost part of a product of 8-bit quantized values whose results are quantized values: 64 output channels at
// some positions, whose 32-bit sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// The addition of another tensor of quantized values to the results, rounded as the separate nodes would: the results
// are quantized and dequantized first, and their sum is quantized again.
struct PointwiseSum {
  float low, high;  // limits of a result before the sum, in its quantization steps
  float scale;      // size of such a step
  float other_zero, other_scale;
  float result_scale, inverse;  // of the sum, and 1 / result_scale
};

struct PointwiseTile {
  const uint8_t* x;  // signed values are handled as unsigned, with 128 added
  int64_t x_place;   // bytes from one position to the next
  int64_t groups;    // of four input channels
  // In the order of `lane_channel`: the initial value of each sum (32 bits), its scale and the summand after scaling
  // (floats). Then [group][output channel], four signed weights each.
  const std::byte* pack;
  uint8_t* y;
  int64_t y_place;
  int32_t zero, low, high;  // of the result, which is clamped to [low, high]
  bool result_signed;
  const PointwiseSum* sum;  // or null; if set, `zero` to `result_signed` are the sum's
  const uint8_t* other;     // the other summand, in the layout of y; may be y
  const std::byte* ahead;   // prefetched: `ahead_step` bytes for each group
  int64_t ahead_step;
};

inline constexpr int64_t kPointwiseChannels = 64;
inline constexpr int64_t kMaxPointwisePlaces = 7;

using PointwiseKernel = void (*)(const PointwiseTile& tile);

// Returns the kernel for 1 to 7 positions, with or without a sum, of signed or unsigned quantized values; null if the
// processor lacks AVX-512 VNNI.
PointwiseKernel pointwise_kernel(int64_t places, bool adds, bool is_signed);

}  // namespace backplane::cpu
