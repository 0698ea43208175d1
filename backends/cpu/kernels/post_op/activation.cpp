// SPDX-License-Identifier: Apache-2.0
#include "kernels/post_op/activation.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/kernel.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

CLONED void relu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}
CLONED void leaky_relu(float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] < 0 ? alpha * y[i] : y[i];
}
CLONED void clip(float* y, int64_t n, float low, float high) {
  for (int64_t i = 0; i < n; ++i) {
    float raised = y[i] < low ? low : y[i];
    y[i] = raised > high ? high : raised;
  }
}
CLONED void linear(float* y, int64_t n, float scale, float shift) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] * scale + shift;
}
template <int kLanes>
[[gnu::always_inline]] inline void affine_lanes(const float* x, float* y, int64_t count, const float* scale,
                                                const float* shift) {
  for (int64_t i = 0; i < count; ++i) {
    for (int l = 0; l < kLanes; ++l) y[i * kLanes + l] = x[i * kLanes + l] * scale[l] + shift[l];
  }
}
CLONED void affine_1(const float* x, float* y, int64_t n, const float* scale, const float* shift) {
  const float a = *scale, b = *shift;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * a + b;
}
CLONED void affine_8(const float* x, float* y, int64_t n, const float* scale, const float* shift) {
  float a[8], b[8];
  for (int l = 0; l < 8; ++l) a[l] = scale[l], b[l] = shift[l];
  affine_lanes<8>(x, y, n, a, b);
}
CLONED void affine_16(const float* x, float* y, int64_t n, const float* scale, const float* shift) {
  float a[16], b[16];
  for (int l = 0; l < 16; ++l) a[l] = scale[l], b[l] = shift[l];
  affine_lanes<16>(x, y, n, a, b);
}
CLONED void hard_swish(float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float gate = y[i] * (1.0f / 6) + 0.5f;
    gate = gate < 0 ? 0 : gate;
    y[i] *= gate > 1 ? 1 : gate;
  }
}
CLONED void swish(float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) y[i] *= sigmoid_formula(alpha * y[i]);
}
CLONED void elu(float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] < 0 ? alpha * expm1_formula(y[i]) : y[i];
}
CLONED void affine_row(float* y, const float* scale, const float* shift, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] * scale[i] + shift[i];
}
CLONED void add(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

}  // namespace

void activate(const Activation& a, float* y, int64_t n) {
  switch (a.function) {
    case Activation::kRelu:
      return clone_of<relu>(y, y, n);
    case Activation::kLeakyRelu:
      return clone_of<leaky_relu>(y, n, a.alpha);
    case Activation::kClip:
      return clone_of<clip>(y, n, a.alpha, a.beta);
    case Activation::kSigmoid:
      return sigmoid_row(y, y, n);
    case Activation::kTanh:
      return tanh_row(y, y, n);
    case Activation::kElu:
      return clone_of<elu>(y, n, a.alpha);
    case Activation::kHardSigmoid:
      clone_of<linear>(y, n, a.alpha, a.beta);
      return clone_of<clip>(y, n, 0, 1);
    case Activation::kHardSwish:
      return clone_of<hard_swish>(y, n);
    case Activation::kSwish:
      return clone_of<swish>(y, n, a.alpha);
    case Activation::kGelu:
      return gelu_row(y, y, n);
    case Activation::kGeluTanh:
      return gelu_tanh_row(y, y, n);
  }
}

void rectify(const float* x, float* y, int64_t count) {
  clone_of<relu>(x, y, count);
}

void affine(const float* x, float* y, int64_t count, int64_t lanes, const float* scale, const float* shift) {
  if (lanes == 1) return clone_of<affine_1>(x, y, count, scale, shift);
  if (lanes == 8) return clone_of<affine_8>(x, y, count, scale, shift);
  return clone_of<affine_16>(x, y, count, scale, shift);
}

ChannelAffine join_affine(std::span<const PostOp> post_ops, int64_t channels, const float* bias) {
  const auto count = static_cast<size_t>(channels);
  std::vector<double> scale, shift;  // rounded once, when all are combined
  for (const PostOp& op : post_ops) {
    if (op.kind != PostOp::kAffine) continue;
    if (scale.empty()) {
      scale.assign(count, 1.0);
      shift.assign(count, 0.0);
      if (bias != nullptr) shift.assign(bias, bias + count);
    }
    for (size_t c = 0; c < count; ++c) {
      const double factor = static_cast<double>(op.scale[c]);
      scale[c] *= factor;
      shift[c] = shift[c] * factor + static_cast<double>(op.shift[c]);
    }
  }
  ChannelAffine joined{{scale.begin(), scale.end()}, {shift.begin(), shift.end()}, {}};
  for (size_t c = 0; c < shift.size(); ++c) {
    const double rest = shift[c] - static_cast<double>(joined.shift[c]);
    joined.compensation.push_back(std::isfinite(rest) ? static_cast<float>(rest) : 0.0f);
  }
  return joined;
}

void finish_rows(std::span<const PostOp> post_ops, float* y, int64_t first, int64_t last, int64_t n,
                 const float* summand) {
  finish_part(post_ops, y, {first, last}, {0, n}, n, summand);
}

void finish_part(std::span<const PostOp> post_ops, float* y, Range rows, Range columns, int64_t n,
                 const float* summand) {
  const int64_t count = columns.last - columns.first;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const int64_t at = row * n + columns.first;
    for (const PostOp& op : post_ops) {
      if (op.kind == PostOp::kAffine)
        clone_of<affine_row>(y + at, op.scale.data() + columns.first, op.shift.data() + columns.first, count);
      else if (op.kind == PostOp::kAdd)
        clone_of<add>(y + at, summand + at, count);
      else
        activate(op.activation, y + at, count);
    }
  }
}

void apply_post_ops(std::span<const PostOp> post_ops, float* y, int64_t outer, int64_t channels, int64_t inner,
                    const float* summand) {
  if (post_ops.empty()) return;
  parallel(outer * channels, 1 + kCheapGrain / (1 + inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* to = y + row * inner;
      const auto channel = static_cast<size_t>(row % channels);
      for (const PostOp& op : post_ops) {
        if (op.kind == PostOp::kAffine)
          clone_of<linear>(to, inner, op.scale[channel], op.shift[channel]);
        else if (op.kind == PostOp::kAdd)
          clone_of<add>(to, summand + row * inner, inner);
        else
          activate(op.activation, to, inner);
      }
    }
  });
}

}  // namespace backplane::cpu
