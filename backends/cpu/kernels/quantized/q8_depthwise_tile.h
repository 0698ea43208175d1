// SPDX-License-Identifier: Apache-2.0
// The innermost part of a convolution of each channel of 8-bit quantized values by itself, by 3×3 taps: neighbouring
// places, whose 32-bit sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// Values count as unsigned: signed ones are moved up by 128, on either side. A tile is two rows of two places, where
// the window moves by one place, else a single place.
struct DepthwiseTile {
  const uint8_t*
      rows[4];       // of the input, where the first place begins to read; the last is for the second row of places
  int64_t x_column;  // bytes from one column of the input to the next
  int64_t x_step;    // and from what one tile reads to what the next one does
  int64_t count;     // tiles, one after another along the rows
  // In the order of `lane_channel`: what a sum begins with (32 bits), its scale and what is added then (floats); then
  // for each row of taps and each place of a row the weights of four columns, signed bytes, 0 where the place reads
  // none.
  const std::byte* pack;
  uint8_t* y;
  int64_t y_place, y_row;   // bytes from one place of the output to the next
  int32_t zero, low, high;  // of the result, which is at its limits, low and high, where it is beyond
  bool result_signed;
};

using DepthwiseKernel = void (*)(const DepthwiseTile& tile);

// For tiles of `places` times `places` (1 or 2) and of 32 or 64 channels of signed or unsigned quantized values; null
// where runtime/processor.h has no products of four quantized values at once.
DepthwiseKernel depthwise_kernel(int64_t places, int64_t width, bool is_signed);

// Which of `width` channels is the i-th of a pack.
inline int64_t lane_channel(int64_t i, int64_t width) {
  const int64_t part = i / (width / 4), lane = i % (width / 4);
  return lane / 4 * 16 + part * 4 + lane % 4;
}

}  // namespace backplane::cpu
