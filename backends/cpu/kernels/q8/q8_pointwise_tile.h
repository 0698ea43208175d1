// SPDX-License-Identifier: Apache-2.0
// The inner loop of a product of 8-bit quantized values whose results are quantized again. A tile is 64 output channels
// at a few positions, whose 32-bit sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// The constants of an addition of another tensor of quantized values to the results. It rounds as the separate nodes
// would: the results are quantized and dequantized before the addition, and the sum is quantized again.
struct PointwiseSum {
  float low, high;  // limits of a result before the addition, in quantization steps relative to its zero point
  float scale;      // size of these steps
  float other_zero, other_scale;
  float result_scale, inverse;  // scale of the sum, and 1 / result_scale
};

struct PointwiseTile {
  const uint8_t* x;    // input; signed values are handled as unsigned, with 128 added
  int64_t x_position;  // bytes from one position's input to the next position's
  int64_t groups;      // number of groups of four input channels
  // Constants and weights, with output channels in the order of `lane_channel` (q8_depthwise_tile.h). First come three
  // arrays with one element per channel: the initial values of the sums (int32_t), the scales and the addends (float).
  // A result is sum · scale + addend. Then come the weights as signed bytes [group][output channel][4 input channels].
  const std::byte* pack;
  uint8_t* y;
  int64_t y_position;
  int32_t zero, low, high;  // the result's zero point; results are clamped to [low, high]
  bool result_signed;
  const PointwiseSum* sum;  // null without an addition; otherwise `zero` to `result_signed` are those of the sum
  const uint8_t* other;     // the tensor to add, in the layout of y; may be y
  const std::byte* ahead;   // memory to prefetch: one cache line per group, `ahead_step` bytes apart
  int64_t ahead_step;
};

inline constexpr int64_t kPointwiseChannels = 64;
inline constexpr int64_t kMaxPointwisePositions = 7;

using PointwiseKernel = void (*)(const PointwiseTile& tile);

// Returns the kernel for `positions` positions (1 to 7), with an addition if `adds`. `is_signed` describes the inputs.
// Returns null if the processor lacks AVX-512 VNNI, or in
// builds without Q8_LANES (Clang, sanitizers).
PointwiseKernel pointwise_kernel(int64_t positions, bool adds, bool is_signed);

}  // namespace backplane::cpu
