// SPDX-License-Identifier: Apache-2.0
// Convolutions and products with known weights, tile by tile (kernels/conv/conv_tile.h). The weights of the next tiles
// are prefetched meanwhile, which oneDNN's kernels do not do: single images spend most of their time waiting for
// weights.
#pragma once

#include "kernels/conv/conv_tile.h"
#include "kernels/conv/panels.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

// The position of a tile in its row, and the taps that are within the input (see ConvTile).
struct TilePlace {
  int64_t y_at,
      x_at;  // positions from the start of the row; x_at: of the input that the first tap of its first position reads
  int64_t front, back;
  ConvTileKernel kernels[2];  // for one and two blocks
};

// The rows of an image: row r of the output reads the input's rows first + r · stride + k · dilation for tap rows k.
struct TileRows {
  int64_t count = 1, taps = 1;
  int64_t first = 0, stride = 1, dilation = 1;
  int64_t in_count = 1;         // rows of the input
  int64_t in_width, out_width;  // positions of a row
};

struct TiledWork {
  ConvSize size;
  int64_t taps, columns;          // of the window, and of each of its rows
  int64_t in_places, out_places;  // of an image
  TileRows rows;
  std::vector<TilePlace> tiles;                                 // of a row, in the order of their positions
  int64_t x_row, x_column, x_place, x_block, y_place, y_block;  // see ConvTile
  bool blocked;                                                 // the result is blocked
  bool transposed;                                              // the weights are [input channel][output channel]
  std::span<const PostOp> post_ops;                             // affine ones first: they become part of the weights
  std::vector<int32_t> channel_at = {};                         // see ConvTile; empty if channels are in blocks
};

// A step for inputs that begin with x and weights; `bias` is the index of another input or -1, and the last input is
// what a post-operation adds. Weights and bias must be known.
std::unique_ptr<Step> make_tiled(const PlanContext& context, const TiledWork& work, std::span<const Tensor> inputs,
                                 int bias, PackedWeights& packed);

}  // namespace backplane::cpu
