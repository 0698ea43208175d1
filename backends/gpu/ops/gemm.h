// SPDX-License-Identifier: Apache-2.0
// Matrix products, for the operators that are made of them.
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

struct Product {
  Tensor a, b, y;  // a_count × [m, k], b_count × [k, n], batch × [m, n], dense; batch i uses matrices i % count
  int64_t batch = 1, m, n, k;
  int64_t a_count = 1, b_count = 1;
  enum class Bias { kNone, kRows, kColumns } bias_of = Bias::kNone;
  Tensor bias;  // kRows: a_count × [m]; kColumns: [n]
  float alpha = 1;
  // Instead of a matrix, b is a tensor that kernels/polyphase.cl laid out; its windows are the columns.
  const Window* window = nullptr;
  // b lies in panels as wide as the tile of m × n, each with its lines one after the other; the last one is moved back
  // to end with the matrix.
  bool in_panels = false;
};
void emit_product(Emit& e, const Product& p);

// MatMul of any ranks: [..., m, k] × [..., k, n]; a vector is a matrix of one row or column. All but `y` is filled in;
// `out_shape` is the result's. Throws sdk::Error where they do not multiply.
Product matrix_product(Emit& e, Tensor a, Tensor b, Shape& out_shape);

}  // namespace backplane::gpu
