// SPDX-License-Identifier: Apache-2.0
// Functions for Row::operations (runtime/row.h). They return an estimate of the operations per output element,
// where a multiply-add counts as two. The extents of the node must be known.
#pragma once

#include <algorithm>

#include "runtime/node.h"

namespace backplane::cpu {

// A convolution whose weights are input `kSlot`.
template <uint32_t kSlot>
double conv_operations(const Node& node) {
  return 2 * node.input_elements(kSlot) / static_cast<double>(std::max<int64_t>(1, node.input_extent(kSlot, 0)));
}

// A matrix product, which sums over the last dimension of input 0, or over its first if transA is set.
inline double product_operations(const Node& node) {
  const int32_t rank = node.input_type(0).rank;
  if (rank <= 0) return 2;
  return 2 * static_cast<double>(
                 std::max<int64_t>(1, node.input_extent(0, node.attr("transA", int64_t{0}) != 0 ? 0 : rank - 1)));
}

}  // namespace backplane::cpu
