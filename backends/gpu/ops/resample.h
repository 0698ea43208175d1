// SPDX-License-Identifier: Apache-2.0
// Resampling along axes: each output position is an input position or a weighted sum of several (pad, crop, resize).
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// For each of `to` output positions, `count` input positions with weights; if the first is -1, the filler.
struct Taps {
  size_t axis = 0;
  int64_t to = 0, count = 1;
  std::vector<int32_t> places;
  std::vector<float> weights;  // empty with one tap
};

// The largest table, in taps.
inline constexpr int64_t kMaxTaps = int64_t{1} << 26;

// Sets output 0 to the input with every table applied, one after the other. `fill` is one element of the input's type;
// empty if no table fills.
void emit_resample(Emit& e, const std::vector<Taps>& tables, const Tensor& fill);

// A tensor of one element that is 0.
Tensor zero(Emit& e, bp_dtype_t dtype);

}  // namespace backplane::gpu
