// SPDX-License-Identifier: Apache-2.0
// Products with a matrix that is known at plan time, by oneDNN. The matrix is packed once, in shares of columns, which
// run in parallel.
#pragma once

#include "kernels/onednn/packed_weights.h"
#include "kernels/post_op/post_op.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct KnownProduct {
  int64_t m, n, k;
  bool b_transposed;                 // B is stored as [n, k]
  std::span<const PostOp> post_ops;  // affine ones come first and become part of B and a bias
  Shape shape;                       // of the result, which has m rows of n elements
};

// Returns null if the product is empty or oneDNN has no fast implementation. `inputs` begin with A [m, k] and B, which
// is known; if the post-operations add a tensor, it is the last input.
std::unique_ptr<Step> make_onednn_product(const PlanContext& context, const KnownProduct& product,
                                          std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
