// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor are stored in memory. Most operators read and write dense tensors. Convolutions and the
// operators between them run several times faster if the channels of a position are adjacent in groups of a
// fixed size. Such tensors stay blocked from operator to operator: the planner inserts a reorder only where an operator
// needs another format (Plan::input_formats, Plan::output_format).
#pragma once

#include <cstdint>

#include "runtime/shape.h"

namespace backplane::cpu {

enum class Format : uint8_t {
  kDense,         // row-major
  kBlocked,       // [N, C / block, D1 … Dn, block]: float only; the last block is padded with zeros
  kChannelsLast,  // [N, D1 … Dn, C]: one-byte types only, for operators on quantized values
};

// Returns the number of channels in a block: 16 with AVX-512, otherwise 8; 0 if this processor has no blocked format.
int64_t channel_block();

// Whether a tensor of these extents can be blocked: it has elements, and 1 to 3 dimensions after batch and channels.
inline bool can_be_blocked(const Shape& shape) {
  return channel_block() != 0 && shape.rank() >= 3 && shape.rank() <= 5 && shape.elements() != 0;
}

// Returns the number of elements in memory, including padding.
int64_t stored_elements(Format format, const Shape& shape);

// Returns the extents [N, C / block, positions, block] of a blocked tensor viewed as a dense one; C / block is rounded
// up.
Shape blocked_view(const Shape& shape);

// Whether the dense and the blocked form of a tensor that can be blocked have the same bytes: there is one position and
// no partial block.
bool same_bytes(const Shape& shape);

}  // namespace backplane::cpu
