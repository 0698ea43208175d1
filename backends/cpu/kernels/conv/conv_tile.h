// SPDX-License-Identifier: Apache-2.0
// The innermost part of a convolution over blocked tensors: one or two blocks of output channels at some positions of
// one row, whose sums stay in registers.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct ConvTile {
  const float* x;             // input of the first position at tap (0, 0), in input block 0; may be outside the input
  int64_t x_block;            // floats from one block of input channels to the next
  const int32_t* channel_at;  // offset of each input channel in floats, if channels are not in blocks; else null
  int64_t x_row, x_column;    // floats from one tap to the next
  int64_t x_place;            // floats from the input of one position to that of the next, if the kernel's stride is 0
  int64_t row_first, row_last;  // rows of taps that lie within the input
  int64_t taps, columns;        // of the window, and of a row of the window
  int64_t front, back;        // in a row, the first `front` taps are outside the input for the first position, the last
                              // `back` taps for the last position
  int64_t first, last;        // input channels
  const float* weights;       // [input block][tap][input channel][output block], a vector each
  bool begins;                // false: y already has sums over other input channels
  const float* add;           // initial values of the sums, in the layout of y; may be y, or null
  const float* bias;          // one for each output channel, or null; added last, so that it is rounded once
  const float* compensation;  // initial values of the sums: the rounding errors of the bias
  float* y;
  int64_t y_block, y_place;  // floats
  bool rectify;              // max(y, 0)
  const float* ahead;        // prefetched: `ahead_step` floats for each tap and input channel
  int64_t ahead_step;
};

using ConvTileKernel = void (*)(const ConvTile& tile);

// The most positions that a tile with blocks of `lanes` channels may have.
int64_t max_tile_places(int64_t lanes);

// Returns the kernel for `blocks` (1 or 2) blocks of output channels and `places` positions, whose inputs are `stride`
// (1 or 2) positions of a blocked tensor apart. With stride 0, for one tap only, they are ConvTile::x_place apart.
ConvTileKernel conv_tile_kernel(int64_t lanes, int64_t blocks, int64_t places, int64_t stride);

}  // namespace backplane::cpu
