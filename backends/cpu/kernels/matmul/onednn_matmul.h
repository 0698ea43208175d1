// SPDX-License-Identifier: Apache-2.0
// A product of rows with a known matrix as oneDNN does it best: the matrix packed once, cut into shares of columns.
#pragma once

#include "kernels/onednn/packed_weights.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct KnownProduct {
  int64_t m, n, k;
  bool b_transposed;                 // B lies as [n, k]
  std::span<const PostOp> post_ops;  // affine ones first: they become part of the weights
  Shape shape;                       // of the result, m rows of n
};

// A plan without a step where oneDNN has no implementation. `inputs` begin with A [m, k] and B, which is known; where
// the post-operations add, the last one is what they add.
Plan plan_known_product(const KnownProduct& product, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
