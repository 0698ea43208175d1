// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/vector_math.h"

#include <cmath>
#include <limits>

#include "kernels/simd/clones.h"

namespace backplane::cpu {

CLONES void exp_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = exp_formula(x[i]);
}
CLONES void erf_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = erf_close_formula(x[i]);
}
CLONES void tanh_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = tanh_formula(x[i]);
}
CLONES void sigmoid_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid_formula(x[i]);
}
CLONES void gelu_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_formula(x[i]);
}
CLONES void gelu_tanh_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_tanh_formula(x[i]);
}

CLONES void softmax_row(const float* x, float* y, int64_t n, float scale) {
  float top = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  if (n >= kFloatLanes) {
    FloatLanes tops = *reinterpret_cast<const FloatLanes*>(x) * scale;
    for (; i + kFloatLanes <= n; i += kFloatLanes) {
      const FloatLanes v = *reinterpret_cast<const FloatLanes*>(x + i) * scale;
      tops = v > tops ? v : tops;
    }
    for (int64_t l = 0; l < kFloatLanes; ++l) top = tops[l] > top ? tops[l] : top;
  }
  for (; i < n; ++i) top = x[i] * scale > top ? x[i] * scale : top;
  for (i = 0; i < n; ++i) y[i] = exp_formula(x[i] * scale - top);
  FloatLanes sums = {};
  for (i = 0; i + kFloatLanes <= n; i += kFloatLanes) sums += *reinterpret_cast<const FloatLanes*>(y + i);
  float sum = sum_of(sums);
  for (; i < n; ++i) sum += y[i];
  const float factor = 1.0f / sum;
  for (i = 0; i < n; ++i) y[i] *= factor;
}

CLONES RowStatistics normalize_row(const float* x, const float* gain, const float* bias, float epsilon, float* y,
                                   int64_t n) {
  const auto [mean, square] = moments_of(x, n);
  const float inverse = 1.0f / std::sqrt(square / static_cast<float>(n) + epsilon);
  if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * gain[i] + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * gain[i];
  }
  return {mean, inverse};
}

}  // namespace backplane::cpu
