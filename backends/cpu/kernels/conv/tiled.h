// SPDX-License-Identifier: Apache-2.0
// Convolutions and products whose weights are known at plan time, computed in tiles (kernels/conv/conv_tile.h). Unlike
// oneDNN's kernels, they prefetch the weights of the next tiles: with single images, most of the time is spent waiting
// for weights.
#pragma once

#include "kernels/conv/conv_tile.h"
#include "kernels/conv/panels.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

// The position of a tile in its row, and how many taps are outside the input there (see ConvTile).
struct TilePlace {
  int64_t y_at, x_at;  // the tile's first position in the output row, and what its first tap reads in the input row
  int64_t front, back;
  ConvTileKernel kernels[2];  // for one and two blocks of output channels
};

// The rows of an image. Row r of the output reads the rows first + r · stride + k · dilation of the input, for each row
// k of the window.
struct TileRows {
  int64_t count = 1, taps = 1;
  int64_t first = 0, stride = 1, dilation = 1;
  int64_t in_count = 1;         // number of input rows
  int64_t in_width, out_width;  // positions per row
};

// A copy of the image in which each row has zeros before and after it, for windows that read further outside the image
// than tiles allow. Numbers of floats; a width of 0: tiles read the image itself.
struct TileMargins {
  int64_t before = 0, width = 0;  // zeros before what is copied of a row, and the row's width with all zeros
  int64_t copied = 0, given = 0;  // what is copied of a row, and the row's width in the image
};

struct TiledWork {
  ConvSize size;
  int64_t taps, columns;          // number of taps in the window, and in each of its rows
  int64_t in_places, out_places;  // positions of an image; of the input with its margins
  TileRows rows;
  std::vector<TilePlace> tiles;                                 // tiles of one row, in order of position
  int64_t x_row, x_column, x_place, x_block, y_place, y_block;  // see ConvTile
  bool blocked;                                                 // whether the result is blocked
  bool transposed;                                              // the weights are [input channel][output channel]
  std::span<const PostOp> post_ops;      // affine ones come first and become part of weights and bias
  std::vector<int32_t> channel_at = {};  // see ConvTile; empty if channels are not shuffled
  TileMargins margins = {};
};

// Creates a step whose inputs begin with x and the weights. `bias` is the index of the bias or -1. A tensor that a
// post-operation adds is the last input. Weights and bias must be known.
std::unique_ptr<Step> make_tiled(const PlanContext& context, const TiledWork& work, std::span<const Tensor> inputs,
                                 int bias, PackedWeights& packed);

}  // namespace backplane::cpu
