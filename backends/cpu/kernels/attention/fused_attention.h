// SPDX-License-Identifier: Apache-2.0
// result_scale · softmax(scale · Q · K + mask) · V, for operands with reordered dimensions. A thread holds one tile of
// scores at a time.
#pragma once

#include <array>

#include "runtime/kernel.h"

namespace backplane::cpu {

// The operands are Q [batch, heads, queries, size], K [batch, heads, size, keys] and V [batch, heads, keys, width], all
// of floats. Dimension d of an operand is dimension order[d] of the input. Dimension d of the result is dimension
// result_order[d] of the product [batch, heads, queries, width]. One of the last two dimensions of each operand must be
// the last of its input, and result_order[3] must be 3.
struct FusedAttention {
  std::array<int, 4> q_order{0, 1, 2, 3}, k_order{0, 1, 2, 3}, v_order{0, 1, 2, 3}, result_order{0, 1, 2, 3};
  float scale = 1;
  float result_scale = 1;
};

// Inputs: Q, K, V, and an optional mask that broadcasts to the scores.
std::unique_ptr<Kernel> make_fused_attention(const FusedAttention& attention);

}  // namespace backplane::cpu
