// SPDX-License-Identifier: Apache-2.0
// Matrix products, for operators that use them.
#pragma once

#include "ops/window.h"

namespace backplane::gpu {

struct Product {
  Tensor a, b, y;  // dense: a_count × [m, k], b_count × [k, n], batch × [m, n]; y[i] is a[i % a_count] b[i % b_count]
  int64_t batch = 1, m, n, k;
  int64_t a_count = 1, b_count = 1;
  enum class Bias { kNone, kRows, kColumns } bias_of = Bias::kNone;
  Tensor bias;  // kRows: a_count × [m]; kColumns: [n]
  Tensor c;     // batch × [m, n], multiplied by beta and added; only the driver's library supports it
  float beta = 0;
  float alpha = 1;
  // Whether a is stored as [k, m], b as [n, k]. Only the driver's library supports this for more than one matrix.
  bool a_transposed = false, b_transposed = false;
  uint32_t compute_types = 0;  // BP_COMPUTE_* in which the product may be computed
  // If set, b is not a matrix but a tensor in the layout of kernels/polyphase.cl; its windows are the columns.
  const Window* window = nullptr;
  // b is stored in panels: blocks of columns as wide as the tile for m × n, each stored line (row of b) after line. The
  // last panel ends with b's last column, so it may repeat columns of the panel before it.
  bool in_panels = false;
};
// Computes the product with the first implementation that does not refuse it (gemm.cpp lists them). If the driver has a
// library, logs which implementation that is.
void emit_product(Emit& e, const Product& p);

// MatMul of any ranks: [..., m, k] × [..., k, n]; a vector is a matrix of one row or column. Sets the operands and
// extents, but not `y`, and sets `out_shape` to the shape of the result. Throws sdk::Error if the shapes do not fit.
Product matrix_product(Emit& e, Tensor a, Tensor b, Shape& out_shape);

}  // namespace backplane::gpu
