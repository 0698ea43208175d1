// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/tiled_product.h"

#include "kernels/conv/tiled.h"

namespace backplane::cpu {

const char* refuse_tiled_product(const KnownProduct& p) {
  const int64_t lanes = channel_block();
  if (lanes == 0) return "the processor lacks SSE4.1";
  if (p.n < lanes) return "its columns do not fill a vector";
  return p.m == 0 || p.n == 0 || p.k == 0 ? "an operand or the result is empty" : nullptr;
}

Plan plan_tiled_product(const PlanContext& context, const KnownProduct& p, std::span<const Tensor> inputs,
                        PackedWeights& packed, int bias) {
  Plan plan;
  const int64_t lanes = channel_block();
  TiledWork work{.size = {1, 1, p.k, p.n},
                 .taps = 1,
                 .columns = 1,
                 .in_positions = p.m,
                 .out_positions = p.m,
                 .rows = {.in_width = p.m, .out_width = p.m},
                 .tiles = {},
                 .x_row = 0,
                 .x_column = 0,
                 .x_position = p.k,
                 .x_block = lanes,
                 .y_position = p.n,
                 .y_block = lanes,
                 .blocked = false,
                 .transposed = !p.b_transposed,
                 .post_ops = p.post_ops};
  const int64_t tiles = (p.m + max_tile_positions(lanes) - 1) / max_tile_positions(lanes);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = t * p.m / tiles, rows = (t + 1) * p.m / tiles - first;
    const ConvTileKernel one = conv_tile_kernel(lanes, 1, rows, 0), two = conv_tile_kernel(lanes, 2, rows, 0);
    work.tiles.push_back({first, first, 0, 0, {one, two}});
  }
  plan.step = make_tiled(context, work, inputs, bias, packed);
  plan.shapes = {p.shape};
  plan.packed = 1;
  return plan;
}

}  // namespace backplane::cpu
