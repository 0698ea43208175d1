// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and Hardmax along one axis.
#include <cmath>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

template <int kBytes>
CLONED void log_softmax_row(const float* x, float* y, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  const int64_t whole = n - n % kFloatLanes;
  float top = -std::numeric_limits<float>::infinity();
  Lanes tops = Lanes::all(top);
  for (int64_t i = 0; i < whole; i += kFloatLanes) tops = Lanes::load(x + i).or_larger(tops);
  top = tops.largest();
  for (int64_t i = whole; i < n; ++i) top = x[i] > top ? x[i] : top;
  float lanes[kFloatLanes] = {};
  for (int64_t i = 0; i < whole; i += kFloatLanes) {
    for (int64_t l = 0; l < kFloatLanes; ++l) lanes[l] += exp_formula(x[i + l] - top);
  }
  float sum = Lanes::load(lanes).sum();
  for (int64_t i = whole; i < n; ++i) sum += exp_formula(x[i] - top);
  const float shift = std::log(sum);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - top - shift;
}

// In this class and in LogSoftmaxRow and HardmaxRow, the elements of a row are `step` apart, and y may be x. `plain`:
// compute as the operator is defined, for reference mode.
struct SoftmaxRow {
  template <class T>
  static void run(const T* x, T* y, int64_t n, int64_t step, bool plain) {
    using C = compute_t<T>;
    if constexpr (std::is_same_v<T, float>) {
      if (step == 1 && !plain) return softmax_row(x, y, n);
    }
    C top = static_cast<C>(x[0]);
    for (int64_t i = 1; i < n; ++i) top = std::max(top, static_cast<C>(x[i * step]));
    C sum = 0;
    if constexpr (std::is_same_v<C, T>) {
      for (int64_t i = 0; i < n; ++i) sum += y[i * step] = std::exp(x[i * step] - top);
      C scale = 1 / sum;
      for (int64_t i = 0; i < n; ++i) y[i * step] *= scale;
    } else {
      for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<C>(x[i * step]) - top);
      for (int64_t i = 0; i < n; ++i) y[i * step] = static_cast<T>(std::exp(static_cast<C>(x[i * step]) - top) / sum);
    }
  }
};
struct LogSoftmaxRow {
  template <class T>
  static void run(const T* x, T* y, int64_t n, int64_t step, bool plain) {
    using C = compute_t<T>;
    if constexpr (std::is_same_v<T, float>) {
      if (step == 1 && !plain) return clone_of<log_softmax_row<64>, log_softmax_row<32>, log_softmax_row<16>>(x, y, n);
    }
    C top = static_cast<C>(x[0]);
    for (int64_t i = 1; i < n; ++i) top = std::max(top, static_cast<C>(x[i * step]));
    C sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<C>(x[i * step]) - top);
    C shift = std::log(sum);
    for (int64_t i = 0; i < n; ++i) y[i * step] = static_cast<T>(static_cast<C>(x[i * step]) - top - shift);
  }
};
struct HardmaxRow {
  template <class T>
  static void run(const T* x, T* y, int64_t n, int64_t step, bool) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (static_cast<compute_t<T>>(x[i * step]) > static_cast<compute_t<T>>(x[best * step])) best = i;
    }
    for (int64_t i = 0; i < n; ++i) y[i * step] = static_cast<T>(i == best ? 1.0f : 0.0f);
  }
};

Verdict supports(const Node& node) {
  return accepts(node, 1, {kFloatTypes});
}

template <class Function>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([wanted = node.attr("axis", int64_t{-1})](const PlanContext& context, Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    int axis = axis_of(wanted, shape.rank());
    if (axis < 0) return bad_axis(wanted, shape.rank());
    int64_t outer = shape.elements(0, axis);
    int64_t n = shape[axis];
    int64_t inner = shape.elements(axis + 1, shape.rank());
    if (n == 0) outer = 0;
    return make_plan({shape},
                     [=, plain = context.reference](Tensors in, Tensors out) {
                       dispatch<Floats>(in[0].dtype, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         const T* x = in[0].as<T>();
                         T* y = out[0].as<T>();
                         parallel(outer * inner, 1 + kMathGrain / (n + 1), [&](int64_t begin, int64_t end) {
                           for (int64_t row = begin; row < end; ++row) {
                             int64_t first = row / inner * n * inner + row % inner;
                             Function::run(x + first, y + first, n, inner, plain);
                           }
                         });
                       });
                     },
                     {.inplace = 0});
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> softmax_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Softmax", 13, supports, create<SoftmaxRow>}.in_fp32(),
      Row{"", "LogSoftmax", 13, supports, create<LogSoftmaxRow>}.in_fp32(),
      Row{"", "Hardmax", 13, supports, create<HardmaxRow>}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
