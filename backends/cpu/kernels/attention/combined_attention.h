// SPDX-License-Identifier: Apache-2.0
// Attention whose queries, keys and values are the columns of one matrix product with the input, as in com.microsoft's
// Attention and QAttention.
#pragma once

#include <optional>

#include "kernels/attention/multi_head.h"

namespace backplane::cpu {

// The node's inputs other than the input and the weights. `added` is added to the scores. Each may be absent.
struct CombinedInputs {
  Tensor bias, mask, past, added;
};

struct CombinedAttention {
  MultiHead heads;
  int64_t inputs, width;         // elements per row of the input, and per row of its product with the weights
  std::array<int64_t, 3> sizes;  // columns of queries, keys and values

  int64_t rows() const { return product({heads.size.batch, heads.size.q_length}); }
  // Extents of the result and of the cache `present`.
  std::vector<Shape> shapes() const;
  // Computes attention. `rows` are the rows of the product, with the bias already added.
  void run(const float* rows, const CombinedInputs& in, const Tensor& y, const Tensor& present, void* scratch) const;
};

// Returns nullopt and sets `error` if the extents do not fit each other.
std::optional<CombinedAttention> fit_combined(const MultiHeadOptions& options, const Shape& x, const Shape& weights,
                                              const CombinedInputs& in, std::string& error);

}  // namespace backplane::cpu
