// SPDX-License-Identifier: Apache-2.0
// The inner loop of a convolution over blocked tensors. A tile is one or two blocks of output channels at some
// positions of one row, whose sums stay in registers. A tap is a position of the window.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct ConvTile {
  const float* x;             // the input of the first position at tap (0, 0) in block 0; may be outside the image
  int64_t x_block;            // floats from one block of input channels to the next
  const int32_t* channel_at;  // offset of each input channel, in floats, if channels are shuffled; otherwise null
  int64_t x_row, x_column;    // floats from one row of taps, and from one tap in a row, to the next
  // Floats from one position's input to the next position's. Only kernels for stride 0 read this; their input channels
  // follow each other.
  int64_t x_position;
  int64_t row_first, row_last;  // the rows of taps [row_first, row_last) are within the input
  int64_t taps, columns;        // number of taps in the window, and in each of its rows
  // In each row, the first `front` taps are outside the input at the first position of the tile, and the last `back`
  // taps at its last position.
  int64_t front, back;
  int64_t first, last;        // the input channels [first, last)
  const float* weights;       // [input block][tap][input channel][output block][lane]
  bool begins;                // false: y already has the sums over previous input channels
  const float* add;           // tensor to add, in the layout of y; may be y, or null
  const float* bias;          // per output channel, or null; added last, so that it is rounded once
  const float* compensation;  // per output channel: the bias's rounding error, with which sums begin
  float* y;
  int64_t y_block, y_position;  // floats from one block, and from one position, to the next
  bool rectify;                 // negative results become 0
  const float* ahead;           // memory to prefetch: `ahead_step` floats per tap and input channel
  int64_t ahead_step;
};

using ConvTileKernel = void (*)(const ConvTile& tile);

// Returns the largest number of positions in a tile whose blocks have `lanes` channels.
int64_t max_tile_positions(int64_t lanes);

// Returns the kernel for `blocks` (1 or 2) blocks of output channels and `positions` positions, whose inputs are
// `stride` (1 or 2) positions of a blocked tensor apart. With stride 0, which allows only one tap, they are
// ConvTile::x_position floats apart.
ConvTileKernel conv_tile_kernel(int64_t lanes, int64_t blocks, int64_t positions, int64_t stride);

}  // namespace backplane::cpu
