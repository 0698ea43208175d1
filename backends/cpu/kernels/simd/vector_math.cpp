// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/vector_math.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

template <auto kFormula>
CLONED void each(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = kFormula(x[i]);
}

// The bits of the largest |x|; NaN counts as larger than infinity.
CLONED uint32_t largest_bits(const float* x, int64_t n) {
  uint32_t top = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]) & 0x7fffffff;
    top = bits > top ? bits : top;
  }
  return top;
}

// Computes a row of angles by a formula. `exact` computes infinities, NaN and magnitudes above kLargestAngle.
template <auto kFormula>
void angle_row(const float* x, float* y, int64_t n, float (*exact)(float)) {
  constexpr int64_t kBlock = 512;
  float angles[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    const bool all = clone_of<largest_bits>(x + begin, count) <= __builtin_bit_cast(uint32_t, kLargestAngle);
    if (!all) std::copy_n(x + begin, count, angles);  // y may be x
    clone_of<each<kFormula>>(x + begin, y + begin, count);
    for (int64_t i = 0; !all && i < count; ++i) {
      if (!(std::fabs(angles[i]) <= kLargestAngle)) y[begin + i] = exact(angles[i]);
    }
  }
}

template <int kBytes>
CLONED void softmax(const float* x, float* y, int64_t n, float scale) {
  using Lanes = FloatLanes<kBytes>;
  const int64_t whole = n - n % kFloatLanes;
  const Lanes factors = Lanes::all(scale);
  float top = x[0] * scale;
  if (whole > 0) {
    Lanes tops = Lanes::load(x) * factors;
    for (int64_t i = kFloatLanes; i < whole; i += kFloatLanes) tops = (Lanes::load(x + i) * factors).or_larger(tops);
    top = tops.largest();
  }
  for (int64_t i = whole; i < n; ++i) top = x[i] * scale > top ? x[i] * scale : top;
  for (int64_t i = 0; i < n; ++i) y[i] = exp_formula(x[i] * scale - top);
  Lanes sums = Lanes::all(0);
  for (int64_t i = 0; i < whole; i += kFloatLanes) sums = sums + Lanes::load(y + i);
  float sum = sums.sum();
  for (int64_t i = whole; i < n; ++i) sum += y[i];
  const float factor = 1.0f / sum;
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

template <int kBytes>
CLONED RowStatistics normalize(const float* x, const float* gain, const float* bias, float epsilon, float* y,
                               int64_t n) {
  const auto [mean, square] = moments_of<kBytes>(x, n);
  const float inverse = 1.0f / std::sqrt(square / static_cast<float>(n) + epsilon);
  if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * gain[i] + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * gain[i];
  }
  return {mean, inverse};
}

}  // namespace

void exp_row(const float* x, float* y, int64_t n) {
  clone_of<each<exp_formula>>(x, y, n);
}
void erf_row(const float* x, float* y, int64_t n) {
  clone_of<each<erf_close_formula>>(x, y, n);
}
void tanh_row(const float* x, float* y, int64_t n) {
  clone_of<each<tanh_formula>>(x, y, n);
}
void sigmoid_row(const float* x, float* y, int64_t n) {
  clone_of<each<sigmoid_formula>>(x, y, n);
}
void gelu_row(const float* x, float* y, int64_t n) {
  clone_of<each<gelu_formula>>(x, y, n);
}
void gelu_tanh_row(const float* x, float* y, int64_t n) {
  clone_of<each<gelu_tanh_formula>>(x, y, n);
}
void log_row(const float* x, float* y, int64_t n) {
  clone_of<each<log_formula>>(x, y, n);
}
void sin_row(const float* x, float* y, int64_t n) {
  angle_row<sin_formula>(x, y, n, std::sin);
}
void cos_row(const float* x, float* y, int64_t n) {
  angle_row<cos_formula>(x, y, n, std::cos);
}
void atan_row(const float* x, float* y, int64_t n) {
  clone_of<each<atan_formula>>(x, y, n);
}
void softmax_row(const float* x, float* y, int64_t n, float scale) {
  clone_of<softmax<64>, softmax<32>, softmax<16>>(x, y, n, scale);
}
RowStatistics normalize_row(const float* x, const float* gain, const float* bias, float epsilon, float* y, int64_t n) {
  return clone_of<normalize<64>, normalize<32>, normalize<16>>(x, gain, bias, epsilon, y, n);
}

}  // namespace backplane::cpu
