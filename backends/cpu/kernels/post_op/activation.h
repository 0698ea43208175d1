// SPDX-License-Identifier: Apache-2.0
// Post-operations for kernels that apply them without oneDNN.
#pragma once

#include <span>
#include <vector>

#include "runtime/post_op.h"

namespace backplane::cpu {

// y = f(y), in place, on the calling thread.
void activate(const Activation& activation, float* y, int64_t count);

// y = max(x, 0), on the calling thread; x may be y.
void rectify(const float* x, float* y, int64_t count);

// y = x · scale + shift over `count` positions of `lanes` channels, with a scale and a shift for each channel.
void affine(const float* x, float* y, int64_t count, int64_t lanes, const float* scale, const float* shift);

// A bias (may be null) and all affine post-operations combined into y · scale + shift for each channel; both are empty
// if there are none.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::vector<float> compensation;  // the rounding errors of the shifts: added first, while sums are still small
};
ChannelAffine join_affine(std::span<const PostOp> post_ops, int64_t channels, const float* bias);

// Post-operations on rows [first, last) of y [rows, n] with n channels, on the calling thread. `summand` is the tensor
// that kAdd adds.
void finish_rows(std::span<const PostOp> post_ops, float* y, int64_t first, int64_t last, int64_t n,
                 const float* summand);

// The same for some columns of these rows.
struct Range {
  int64_t first, last;
};
void finish_part(std::span<const PostOp> post_ops, float* y, Range rows, Range columns, int64_t n,
                 const float* summand);

// Post-operations on the dense or blocked float result of a kernel whose channels are `inner` elements apart and
// `inner` long: y is [outer, channels, inner]. `summand` is the tensor that kAdd adds.
void apply_post_ops(std::span<const PostOp> post_ops, float* y, int64_t outer, int64_t channels, int64_t inner,
                    const float* summand);

}  // namespace backplane::cpu
