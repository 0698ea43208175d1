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

// A bias (may be null) and all affine post-operations, combined into y · scale + shift for each channel. Empty, without
// the bias, if there are no affine post-operations.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::vector<float> compensation;  // the rounding errors of the shifts; added first, while sums are still small
};
ChannelAffine join_affine(std::span<const PostOp> post_ops, int64_t channels, const float* bias);

// Applies post-operations to rows [first, last) of y [rows, n] with n channels, on the calling thread. `summand` is the
// tensor that kAdd adds.
void finish_rows(std::span<const PostOp> post_ops, float* y, int64_t first, int64_t last, int64_t n,
                 const float* summand);

// As finish_rows, for some columns of the rows.
struct Range {
  int64_t first, last;
};
void finish_part(std::span<const PostOp> post_ops, float* y, Range rows, Range columns, int64_t n,
                 const float* summand);

// Applies post-operations to the dense float result y [outer, channels, inner] of a kernel, on the backend's threads:
// each channel of `outer` has `inner` contiguous elements. `summand` is the tensor that kAdd adds.
void apply_post_ops(std::span<const PostOp> post_ops, float* y, int64_t outer, int64_t channels, int64_t inner,
                    const float* summand);

}  // namespace backplane::cpu
