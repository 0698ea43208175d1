// SPDX-License-Identifier: Apache-2.0
// Convolutions and products whose weights are known at plan time, computed in tiles (kernels/conv/conv_tile.h). Unlike
// oneDNN's kernels, they prefetch the weights of the next tiles: with single images, most of the time is spent waiting
// for weights.
#pragma once

#include "kernels/conv/conv_tile.h"
#include "kernels/conv/panels.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/post_op/post_op.h"

namespace backplane::cpu {

// The position of a tile in its row, and how many taps are outside the input there (see ConvTile).
struct RowTile {
  int64_t y_at;  // the tile's first position in the output row
  int64_t x_at;  // the position in the input row that the tile's first tap reads; may be outside
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

// A copy of the image for windows that tiles cannot read there: with zeros before and after each row, where a window
// reaches too far outside the image, and with the positions of a row in the order in which a larger stride reads them.
struct TileCopy {
  int64_t width = 0;   // positions of a row of the copy; 0: tiles read the image itself
  int64_t given = 0;   // positions of a row of the image
  int64_t before = 0;  // zeros in front of a row
  // A row of the image becomes `phases` rows of the copy: row i of these has the positions i, i + step, i + 2 · step, …
  // of the padded row.
  int64_t step = 1, phases = 1;
};

struct TiledWork {
  ConvSize size;
  int64_t taps, columns;                // number of taps in the window, and in each of its rows
  int64_t in_positions, out_positions;  // positions of an input image (of its copy, if any) and of an output image
  TileRows rows;
  std::vector<RowTile> tiles;                                         // tiles of one row, in order of position
  int64_t x_row, x_column, x_position, x_block, y_position, y_block;  // see ConvTile
  bool blocked;                                                       // whether the result is blocked
  bool transposed;                                                    // the weights are [input channel][output channel]
  std::span<const PostOp> post_ops;      // affine ones come first and become part of weights and bias
  std::vector<int32_t> channel_at = {};  // see ConvTile; empty if channels are not shuffled
  TileCopy copy = {};
  // For each tap of a tile, its index among the taps of the weights, or -1 if its weights are 0; empty: the order is
  // the same.
  std::vector<int64_t> tap_at = {};
};

// Creates a step whose inputs begin with x and the weights. `bias` is the index of the bias or -1. A tensor that a
// post-operation adds is the last input. Weights and bias must be known.
std::unique_ptr<Step> make_tiled(const PlanContext& context, const TiledWork& work, std::span<const Tensor> inputs,
                                 int bias, PackedWeights& packed);

}  // namespace backplane::cpu
