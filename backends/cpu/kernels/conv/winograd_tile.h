// SPDX-License-Identifier: Apache-2.0
// The transforms of the Winograd convolution F(4×4, 3×3): a tile of 4 × 4 results of a 3 × 3 window follows from 6 × 6
// inputs by 36 products of transformed inputs and transformed weights, where a direct convolution needs 144 (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). Tensors are blocked with 8 channels a block.
#pragma once

#include <cstdint>

namespace backplane::cpu {

inline constexpr int64_t kWinogradOutputs = 4, kWinogradInputs = 6;  // extents of a tile and of its inputs
inline constexpr int64_t kWinogradProducts = kWinogradInputs * kWinogradInputs;
inline constexpr int64_t kWinogradLanes = 8;

// The inputs of a tile in one block of channels.
struct WinogradInputs {
  const float* x;               // the first of the 6 × 6 inputs; may be outside the image
  int64_t x_row;                // floats from one row of the image to the next
  int64_t row_first, row_last;  // the rows of the 6 × 6 inputs that are inside the image
  int64_t column_first, column_last;
  float* v;           // the transformed inputs
  int64_t v_product;  // floats from one of the 36 products to the next
};

// A tile of results in one block of channels.
struct WinogradOutputs {
  const float* m;             // the sums of products over all input channels
  int64_t m_product;          // floats from one of the 36 products to the next
  float* y;                   // the first result
  int64_t y_row;              // floats from one row of the result to the next
  int64_t rows, columns;      // the results of the tile that are inside the image, from 1 to 4 each
  const float* compensation;  // per channel: added first
  const float* bias;          // per channel: added next
  const float* add;           // a tensor to add, in the layout of y; may be y, or null
  bool rectify;               // negative results become 0
};

struct WinogradTransforms {
  void (*inputs)(const WinogradInputs& tile);
  void (*outputs)(const WinogradOutputs& tile);
};
// For the instruction set of processor().
WinogradTransforms winograd_transforms();

// Transforms the weights [3][3] of one pair of channels, multiplied by `scale`. Writes 36 numbers, `step` apart.
void transform_winograd_weights(const float* weights, float scale, float* to, int64_t step);

}  // namespace backplane::cpu
