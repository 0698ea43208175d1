// SPDX-License-Identifier: Apache-2.0
// What kernels do themselves to results that oneDNN does not finish.
#pragma once

#include <span>
#include <vector>

#include "runtime/post_op.h"

namespace backplane::cpu {

// y = f(y), in place, on the calling thread.
void activate(const Activation& activation, float* y, int64_t count);

// y = max(x, 0), on the calling thread; x may be y.
void rectify(const float* x, float* y, int64_t count);

// y = x · scale + shift over `count` places of `lanes` channels each, which have their own scales and shifts.
void affine(const float* x, float* y, int64_t count, int64_t lanes, const float* scale, const float* shift);

// What affine post-operations do together to each channel, after a bias that may be null: y · scale + shift. Both are
// empty where there are none.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::vector<float>
      compensation;  // by which the shifts are off, being rounded: added first, where nothing large is yet
};
ChannelAffine join_affine(std::span<const PostOp> post_ops, int64_t channels, const float* bias);

// Post-operations on rows of `n` channels each, on the calling thread: those of the rows [first, last) of y [rows, n]
// and of `summand`, which is what kAdd adds.
void finish_rows(std::span<const PostOp> post_ops, float* y, int64_t first, int64_t last, int64_t n,
                 const float* summand);

// The same for some columns of these rows.
struct Range {
  int64_t first, last;
};
void finish_part(std::span<const PostOp> post_ops, float* y, Range rows, Range columns, int64_t n,
                 const float* summand);

// Post-operations on the dense or blocked float result of a kernel whose channels are `inner` elements apart and
// `inner` long: y is [outer, channels, inner]. `summand` is what kAdd adds.
void apply_post_ops(std::span<const PostOp> post_ops, float* y, int64_t outer, int64_t channels, int64_t inner,
                    const float* summand);

}  // namespace backplane::cpu
