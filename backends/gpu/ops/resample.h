// SPDX-License-Identifier: Apache-2.0
// Resampling along axes: each output position is an input position or a weighted sum of several (pad, crop, resize).
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// A table of the axis's `to` output positions: for each, `count` input positions and their weights. If the first input
// position is -1, the output is the fill value.
struct Taps {
  size_t axis = 0;
  int64_t to = 0, count = 1;
  std::vector<int32_t> positions;
  std::vector<float> weights;  // unused if `count` is 1
};

// The size limit of a table, in input positions.
inline constexpr int64_t kMaxTaps = int64_t{1} << 26;

// Applies the tables to input 0, one after another, and sets output 0 to the result. `fill` is one element of the
// input's type; it may be empty if no table needs a fill value.
void emit_resample(Emit& e, const std::vector<Taps>& tables, const Tensor& fill);

// A tensor of one element that is 0.
Tensor zero(Emit& e, bp_dtype_t dtype);

}  // namespace backplane::gpu
