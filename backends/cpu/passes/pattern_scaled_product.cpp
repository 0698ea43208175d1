// SPDX-License-Identifier: Apache-2.0
#include "passes/pattern_scaled_product.h"

#include "kernels/integer/conv_integer.h"
#include "kernels/integer/matmul_integer.h"

namespace backplane::cpu {

namespace {

// Whether a product can be multiplied by the value, column by column: the value is a single number or has one number
// per column, and does not add dimensions to the product.
bool scales_columns(const FusionGraph& g, uint32_t value, int32_t product_rank, int64_t columns) {
  if (value == BP_NONE || g.value(value).dtype != BP_DTYPE_FLOAT) return false;
  const int32_t rank = g.type(value).rank;
  if (rank < 0 || rank > product_rank) return false;
  for (int32_t i = 0; i < rank; ++i) {
    const int64_t extent = g.extent(value, i);
    if (extent != 1 && (i + 1 < rank || extent < 1 || extent != columns)) return false;
  }
  return true;
}

// Whether the value has one 32-bit integer for each output channel of a convolution with these weights.
bool adds_to_channels(const FusionGraph& g, uint32_t value, uint32_t weights) {
  const int32_t rank = g.type(weights).rank;
  if (value == BP_NONE || g.value(value).dtype != BP_DTYPE_INT32 || g.type(value).rank != rank) return false;
  for (int32_t i = 0; i < rank; ++i) {
    if (g.extent(value, i) != (i == 1 ? g.extent(weights, 0) : 1)) return false;
  }
  return true;
}

}  // namespace

uint32_t find_scaled_product(FusionGraph& g, uint32_t product) {
  const bool is_conv = g.is(product, {"ConvInteger"});
  if (is_conv && !g.known(g.call(product).inputs[1])) return BP_NONE;
  std::vector<uint32_t> joined = {product};
  uint32_t sums = g.result(product), bias = BP_NONE;
  const int32_t rank = g.type(sums).rank;
  if (const uint32_t add = is_conv ? g.sole_reader(sums, {"Add"}) : BP_NONE; add != BP_NONE) {
    bias = g.other(add, sums);
    if (!adds_to_channels(g, bias, g.call(product).inputs[1])) return BP_NONE;
    joined.push_back(add);
    sums = g.result(add);
  }
  const uint32_t cast = g.sole_reader(sums, {"Cast"});
  if (cast == BP_NONE || g.value(g.result(cast)).dtype != BP_DTYPE_FLOAT) return BP_NONE;
  const uint32_t multiply = g.sole_reader(g.result(cast), {"Mul"});
  if (multiply == BP_NONE) return BP_NONE;
  const uint32_t scale = g.other(multiply, g.result(cast));
  const int64_t columns = is_conv || rank < 1 ? -1 : g.extent(sums, rank - 1);
  if (!scales_columns(g, scale, rank, columns)) return BP_NONE;
  std::vector<uint32_t> operands(g.call(product).inputs.begin(), g.call(product).inputs.end());
  operands.resize(4, BP_NONE);
  operands.push_back(scale);
  if (bias != BP_NONE) operands.push_back(bias);
  joined.insert(joined.end(), {cast, multiply});
  g.replace(joined, is_conv ? make_scaled_conv(g.node(product)) : make_scaled_matmul(), std::move(operands));
  g.call(multiply).row = g.call(product).row;
  g.call(multiply).node = g.call(product).node;
  return multiply;
}

}  // namespace backplane::cpu
