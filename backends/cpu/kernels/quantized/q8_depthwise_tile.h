// SPDX-License-Identifier: Apache-2.0
// The innermost part of a depthwise 3×3 convolution of 8-bit quantized values: neighbouring positions, whose 32-bit
// sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// Values are handled as unsigned: 128 is added to signed inputs and outputs. A tile is 2×2 positions for stride
// 1, else a single one.
struct DepthwiseTile {
  const uint8_t*
      rows[4];       // of the input, at the first column that is read; the last one is for the second row of positions
  int64_t x_column;  // bytes from one column of the input to the next
  int64_t x_step;    // from the input of one tile to that of the next
  int64_t count;     // tiles, one after another along the rows
  // In the order of `lane_channel`: the initial value of each sum (32 bits), its scale and the summand after scaling
  // (floats). Then, for each row of taps and each position in a row, the weights of four columns (signed bytes), 0 for
  // columns that the position does not read.
  const std::byte* pack;
  uint8_t* y;
  int64_t y_place, y_row;   // bytes from one position of the output to the next
  int32_t zero, low, high;  // of the result, which is clamped to [low, high]
  bool result_signed;
};

using DepthwiseKernel = void (*)(const DepthwiseTile& tile);

// Returns the kernel for tiles of `places` × `places` positions (1 or 2) and 32 or 64 channels of signed or unsigned
// quantized values; null if the processor lacks AVX-512 VNNI.
DepthwiseKernel depthwise_kernel(int64_t places, int64_t width, bool is_signed);

// Returns which of `width` channels is the i-th of a pack.
inline int64_t lane_channel(int64_t i, int64_t width) {
  const int64_t part = i / (width / 4), lane = i % (width / 4);
  return lane / 4 * 16 + part * 4 + lane % 4;
}

}  // namespace backplane::cpu
