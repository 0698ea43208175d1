// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor are stored in memory. Most operators read and write dense tensors. Convolutions, and the
// operators between them, run several times faster if the channels of a position are adjacent in whole vectors. Such
// tensors stay blocked from operator to operator: the planner inserts a reorder only if an operator needs another
// format (Plan::input_formats, Plan::output_format).
#pragma once

#include <cstdint>

#include "runtime/shape.h"

namespace backplane::cpu {

enum class Format : uint8_t {
  kDense,         // row-major
  kBlocked,       // [N, C / block, D1 … Dn, block]: float only; channels beyond C fill the last block and hold zeros
  kChannelsLast,  // [N, D1 … Dn, C]: of one-byte types only, for integer convolutions
};

// Channels in a block: the lanes of this processor's vectors; 0 if there is no blocked format.
int64_t channel_block();

// Whether tensors of these extents can be blocked: they have elements, a batch, channels and 1 to 3 more dimensions.
inline bool can_be_blocked(const Shape& shape) {
  return channel_block() != 0 && shape.rank() >= 3 && shape.rank() <= 5 && shape.elements() != 0;
}

// Returns the number of elements in memory, padding included.
int64_t stored_elements(Format format, const Shape& shape);

// The extents [N, C / block, positions, block] of a blocked tensor viewed as a dense one.
Shape blocked_view(const Shape& shape);

// Whether both formats have the same bytes: there are only whole blocks, and one position.
bool same_bytes(const Shape& shape);

}  // namespace backplane::cpu
