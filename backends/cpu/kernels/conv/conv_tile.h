// SPDX-License-Identifier: Apache-2.0
// The innermost part of a convolution over blocked tensors: one or two blocks of output channels at some places of one
// row, whose sums stay in registers.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct ConvTile {
  const float* x;   // what the first place reads through tap (0, 0), in input block 0; may lie outside the input
  int64_t x_block;  // floats from one block of input channels to the next
  const int32_t* channel_at;    // floats to each input channel, where they are in no such order; else null
  int64_t x_row, x_column;      // floats from one tap to the next
  int64_t x_place;              // floats from one place's input to the next one's, where the kernel's stride is 0
  int64_t row_first, row_last;  // rows of taps that lie within the input
  int64_t taps, columns;        // of the window, and in a row of it
  int64_t front, back;        // of a row's taps the first `front` miss the first place, the last `back` the last place
  int64_t first, last;        // input channels
  const float* weights;       // for each block of input channels, tap and input channel a vector for each output block
  bool begins;                // else y has sums of other input channels already
  const float* add;           // what the sums begin with, lies like y; may be y, or null
  const float* bias;          // added last, so that it rounds once: one for each output channel, or null
  const float* compensation;  // the sums begin with: by how much the bias is off
  float* y;
  int64_t y_block, y_place;  // floats
  bool rectify;              // max(y, 0)
  const float* ahead;        // read soon: `ahead_step` floats for each tap and input channel
  int64_t ahead_step;
};

using ConvTileKernel = void (*)(const ConvTile& tile);

// The most places that a tile can have with blocks of `lanes` channels.
int64_t max_tile_places(int64_t lanes);

// For `blocks` (1 or 2) blocks of output channels and `places` places whose inputs are `stride` (1 or 2) places of a
// blocked tensor apart; with stride 0 they lie anywhere, and there is one tap.
ConvTileKernel conv_tile_kernel(int64_t lanes, int64_t blocks, int64_t places, int64_t stride);

}  // namespace backplane::cpu
