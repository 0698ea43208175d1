// SPDX-License-Identifier: Apache-2.0
// Post-operations for kernels that apply them without oneDNN.
#pragma once

#include <span>
#include <vector>

#include "kernels/post_op/post_op.h"

namespace backplane::cpu {

// Applies the activation to y in place, on the calling thread.
void activate(const Activation& activation, float* y, int64_t count);

// y = max(x, 0), on the calling thread; x may be y.
void rectify(const float* x, float* y, int64_t count);

// y = x · scale + shift over `count` positions of `lanes` channels (1, 8 or 16), with a scale and a shift for each
// channel.
void affine(const float* x, float* y, int64_t count, int64_t lanes, const float* scale, const float* shift);

// All affine post-operations, combined with the bias (unless it is null) into y · scale + shift for each channel. If
// there are no affine post-operations, the vectors are empty: callers add the bias themselves.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::vector<float> compensation;  // rounding errors of the shifts, to be added first, while sums are small
};
ChannelAffine join_affine(std::span<const PostOp> post_ops, int64_t channels, const float* bias);

// Applies post-operations to rows [first, last) of y [rows, n], whose columns are channels, on the calling thread.
// `summand` is the tensor that kAdd adds.
void finish_rows(std::span<const PostOp> post_ops, float* y, int64_t first, int64_t last, int64_t n,
                 const float* summand);

struct Range {
  int64_t first, last;
};
// Like finish_rows, but only for some columns of the rows.
void finish_part(std::span<const PostOp> post_ops, float* y, Range rows, Range columns, int64_t n,
                 const float* summand);

// Applies post-operations to a kernel's dense float result y [outer, channels, inner], on the threads of the device.
// `summand` is the tensor that kAdd adds.
void apply_post_ops(std::span<const PostOp> post_ops, float* y, int64_t outer, int64_t channels, int64_t inner,
                    const float* summand);

}  // namespace backplane::cpu
