// SPDX-License-Identifier: Apache-2.0
// Rotary embedding, for operators that contain it.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// A tensor whose heads are rotated: [batch, length, row_heads * size] if it has rank 3, otherwise [batch, heads,
// length, size] with row_heads = heads. Heads from `heads` on are neither read nor written.
struct RotaryHeads {
  Tensor x;
  int64_t heads, row_heads, size;
};

struct RotaryAngles {
  Tensor cosines, sines;  // [lines, dim / 2] with positions, otherwise [batch, length, dim / 2]
  Tensor positions;       // INT64 [batch, length]: the line of each token; may be empty
  int64_t dim;            // the elements at the beginning of a head that are rotated
  bool interleaved;       // whether adjacent elements form a pair, instead of those that are dim / 2 apart
};

// Writes the rotated heads to `y`, which has the extents of `x`.
void emit_rotation(Emit& e, const RotaryHeads& heads, const RotaryAngles& angles, const Tensor& y);

}  // namespace backplane::gpu
