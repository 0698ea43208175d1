// SPDX-License-Identifier: Apache-2.0
// The inner loop of a 3×3 depthwise convolution of 8-bit quantized values. A tile is one or four neighboring output
// positions, whose 32-bit sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::cpu {

// Arithmetic is on unsigned values: 128 is added to signed inputs, and subtracted from signed results. A tile is 2×2
// positions at stride 1, otherwise a single position.
struct DepthwiseTile {
  const uint8_t* rows[4];  // input rows, at the first column that is read; a tile of one position has only three
  int64_t x_column;        // bytes from one input column to the next
  int64_t x_step;          // bytes from one tile's input to the next tile's
  int64_t count;           // number of tiles, which follow each other along the rows
  // Constants and weights, with channels in the order of `lane_channel`. First come three arrays with one element per
  // channel: the initial values of the sums (int32_t), the scales and the addends (float). A result is sum · scale +
  // addend. Then come the weights as signed bytes [row of the window][position in a row of the tile][channel][4 input
  // columns], 0 for a column that the position does not read.
  const std::byte* pack;
  uint8_t* y;
  int64_t y_position, y_row;  // bytes from one output column, and from one output row, to the next
  int32_t zero, low, high;    // the result's zero point; results are clamped to [low, high]
  bool result_signed;
};

using DepthwiseKernel = void (*)(const DepthwiseTile& tile);

// Returns the kernel for tiles of `positions` × `positions` positions (1 or 2) and `width` channels (32 or 64).
// `is_signed` describes the inputs. Returns null if the processor lacks AVX-512 VNNI, or in
// builds without Q8_LANES (Clang, sanitizers).
DepthwiseKernel depthwise_kernel(int64_t positions, int64_t width, bool is_signed);

// Returns the channel at index i of a pack of `width` channels. Channels are not in sequence, because bytes are
// unpacked within 16-byte lanes (simd/q8_lanes.h).
inline int64_t lane_channel(int64_t i, int64_t width) {
  const int64_t part = i / (width / 4), lane = i % (width / 4);
  return lane / 4 * 16 + part * 4 + lane % 4;
}

}  // namespace backplane::cpu
