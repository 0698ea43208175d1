// SPDX-License-Identifier: Apache-2.0
// Math functions as branch-free formulas, which compilers vectorize in loops of CLONED functions. Errors are a few ulp,
// but those of GELU are larger where its result is close to 0. exp, erf and tanh propagate NaN, and are right for
// infinite arguments too.
#pragma once

#include <cstdint>

#include "kernels/simd/lanes.h"

namespace backplane::cpu {

// The mean of a row, and the sum of the squared differences from it.
struct Moments {
  float mean, square;
};
template <int kBytes>
[[gnu::always_inline]] inline Moments moments_of(const float* x, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  const int64_t whole = n - n % kFloatLanes;
  Lanes sums = Lanes::all(0);
  for (int64_t i = 0; i < whole; i += kFloatLanes) sums = sums + Lanes::load(x + i);
  float sum = sums.sum();
  for (int64_t i = whole; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  Lanes squares = Lanes::all(0);
  for (int64_t i = 0; i < whole; i += kFloatLanes) {
    const Lanes d = Lanes::load(x + i) - Lanes::all(mean);
    squares = squares + d * d;
  }
  float square = squares.sum();
  for (int64_t i = whole; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  return {mean, square};
}

// e^x = 2^n · e^r with |r| ≤ ln 2 / 2. Adding and subtracting 1.5 · 2^23 rounds x / ln 2 to the integer n. 2^n is split
// into two factors, so that subnormal results are right too.
[[gnu::always_inline]] inline float exp_formula(float x) {
  constexpr float kRound = 12582912.0f;
  float c = x < -105.0f ? -105.0f : x;
  c = c > 89.0f ? 89.0f : c;
  const float shifted = c * 1.44269504f + kRound;
  const float n = shifted - kRound;
  float r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const uint32_t whole = __builtin_bit_cast(uint32_t, shifted) - __builtin_bit_cast(uint32_t, kRound);
  const auto half = static_cast<uint32_t>(static_cast<int32_t>(whole) >> 1);
  return p * __builtin_bit_cast(float, (half + 127) << 23) * __builtin_bit_cast(float, (whole - half + 127) << 23);
}

// log(1 + x) for 0 <= x <= 1: 2 · artanh(s) with s = x / (2 + x) <= 1/3, whose series is cut where terms are below
// 2^-26.
[[gnu::always_inline]] inline float log1p_formula(float x) {
  const float s = x / (2.0f + x), q = s * s;
  float p = 1.0f / 15;
  p = p * q + 1.0f / 13;
  p = p * q + 1.0f / 11;
  p = p * q + 1.0f / 9;
  p = p * q + 1.0f / 7;
  p = p * q + 1.0f / 5;
  p = p * q + 1.0f / 3;
  return 2 * s + 2 * s * q * p;
}

// erf within 2 ulp: below 1 an odd polynomial, from 1 on 1 - e^q, where the polynomial q approximates log(1 - erf).
// Beyond ±4 the result rounds to ±1.
[[gnu::always_inline]] inline float erf_close_formula(float x) {
  float t = __builtin_fabsf(x);
  t = t > 4.0f ? 4.0f : t;
  const float s = t * t;
  float p = 7.882497448008507e-05f;
  p = p * s + -8.018855005502701e-04f;
  p = p * s + 5.189312156289816e-03f;
  p = p * s + -2.685432881116867e-02f;
  p = p * s + 1.128359735012054e-01f;
  p = p * s + -3.761262595653534e-01f;
  p = p * s + 1.283791661262512e-01f;
  float q = 7.342138701460499e-07f;
  q = q * t + -1.163509023172082e-05f;
  q = q * t + 5.854854316567071e-05f;
  q = q * t + 1.252433430636302e-04f;
  q = q * t + -3.420318709686398e-03f;
  q = q * t + 2.393699437379837e-02f;
  q = q * t + -1.070715934038162e-01f;
  q = q * t + -6.341199278831482e-01f;
  q = q * t + -1.129234075546265e+00f;
  q = q * t + 1.305398909607902e-04f;
  const float y = t < 1.0f ? t + t * p : 1.0f - exp_formula(q);
  return __builtin_copysignf(y, x);
}

// A faster erf, within 8 ulp, for uses where other errors dominate. It is an odd rational function; beyond ±4 the
// result is ±1.
[[gnu::always_inline]] inline float erf_formula(float x) {
  float c = x < -4.0f ? -4.0f : x;
  c = c > 4.0f ? 4.0f : c;
  const float s = c * c;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return c * p / q;
}

// tanh as an odd rational function, which is constant beyond ±7.9. Beyond ±8.32 the result is ±1, within 2 ulp.
[[gnu::always_inline]] inline float tanh_formula(float x) {
  float c = x < -7.9f ? -7.9f : x;
  c = c > 7.9f ? 7.9f : c;
  const float s = c * c;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  const float y = c * p / q;
  return __builtin_fabsf(x) > 8.32f ? __builtin_copysignf(1.0f, x) : y;
}

// e^x - 1 for x <= 0, from tanh(x / 2), which does not cancel near 0. x > 0 counts as 0; NaN stays NaN.
[[gnu::always_inline]] inline float expm1_formula(float x) {
  const float t = tanh_formula(0.5f * (x > 0 ? 0.0f : x));
  return 2 * t / (1 - t);
}

// log within 1 ulp: x = 2^e · (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and log(1 + f) is f - f²/2 plus a
// polynomial. Subnormal numbers are first multiplied by 2^23. ln 2 is split in two, so that e times the larger part is
// exact.
[[gnu::always_inline]] inline float log_formula(float x) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  const bool tiny = x < 0x1p-126f;
  const uint32_t shifted = __builtin_bit_cast(uint32_t, tiny ? x * 0x1p23f : x) - kSqrtHalf;
  const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = __builtin_bit_cast(float, (shifted & 0x007fffff) + kSqrtHalf) - 1.0f, s = f * f;
  float p = 7.0376836292e-2f;
  p = p * f + -1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f + -1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f + -1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f + -2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  p = p * f * s + -2.12194440e-4f * e;
  float y = f + (p - 0.5f * s) + 0.693359375f * e;
  y = x < __builtin_inff() ? y : x;  // infinity and NaN
  return x > 0 ? y : x == 0 ? -__builtin_inff() : x != x ? x : __builtin_nanf("");
}

// Sine and cosine within 2 ulp, up to kLargestAngle: |x| = quarter · pi / 2 + rest with |rest| at most a little above
// pi / 4. The rest is computed in double precision: the first part of pi / 2 has 25 bits, so its product with a float's
// integer is exact. quarter_turns_formula returns sin(|x| + turned · pi / 2), with the sign flipped by the bit `sign`.
inline constexpr float kLargestAngle = 131072.0f;
[[gnu::always_inline]] inline float quarter_turns_formula(float x, uint32_t turned, uint32_t sign) {
  constexpr float kRound = 12582912.0f;
  const float a = __builtin_fabsf(x), shifted = a * 0.636619772f + kRound;
  const double n = shifted - kRound;
  const auto rest = static_cast<float>((a - n * 1.57079631090164184570) - n * 1.58932547735281966916e-08);
  const uint32_t quarter = __builtin_bit_cast(uint32_t, shifted) + turned;
  const float s = rest * rest;
  float p = -1.9515295891e-4f;
  p = p * s + 8.3321608736e-3f;
  p = p * s + -1.6666654611e-1f;
  p = p * s * rest + rest;
  float q = 2.443315711809948e-5f;
  q = q * s + -1.388731625493765e-3f;
  q = q * s + 4.166664568298827e-2f;
  q = q * s * s + (1.0f - 0.5f * s);
  const float y = (quarter & 1) != 0 ? q : p;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, y) ^ (quarter & 2) << 30 ^ sign);
}
[[gnu::always_inline]] inline float sin_formula(float x) {
  return quarter_turns_formula(x, 0, __builtin_bit_cast(uint32_t, x) & 0x80000000);  // keeps the sign of 0
}
[[gnu::always_inline]] inline float cos_formula(float x) {
  return quarter_turns_formula(x, 1, 0);
}

// atan within 3 ulp: an odd polynomial on |u| <= tan(pi / 8), where u is |x|, (|x| - 1) / (|x| + 1) or -1 / |x|. For
// the last two, pi / 4 or pi / 2 is added, in two parts.
[[gnu::always_inline]] inline float atan_formula(float x) {
  const float t = __builtin_fabsf(x);
  const bool middle = t > 0.414213562f, large = t > 2.41421356f;
  const float u = (large ? -1.0f : middle ? t - 1.0f : t) / (large ? t : middle ? t + 1.0f : 1.0f), s = u * u;
  float p = 8.05374449538e-2f;
  p = p * s + -1.38776856032e-1f;
  p = p * s + 1.99777106478e-1f;
  p = p * s + -3.33329491539e-1f;
  const float low = large ? -4.37113883e-8f : middle ? -2.18556941e-8f : 0.0f;
  const float high = large ? 1.57079637f : middle ? 0.785398185f : 0.0f;
  return __builtin_copysignf(high + (p * s * u + low + u), x);
}

// 1 / (1 + e^-x), from e^-|x|, which does not overflow. The quotient of two finite numbers is right even where it is
// subnormal.
[[gnu::always_inline]] inline float sigmoid_formula(float x) {
  const float small = exp_formula(-__builtin_fabsf(x));
  return (x < 0 ? small : 1.0f) / (1.0f + small);
}
[[gnu::always_inline]] inline float gelu_formula(float x) {
  return 0.5f * x * (1.0f + erf_formula(x * 0.70710678f));
}
[[gnu::always_inline]] inline float gelu_tanh_formula(float x) {
  return 0.5f * x * (1.0f + tanh_formula(0.79788456f * (x + 0.044715f * x * x * x)));
}

// Compute whole rows on the calling thread; y may be x.
void exp_row(const float* x, float* y, int64_t n);
void erf_row(const float* x, float* y, int64_t n);
void tanh_row(const float* x, float* y, int64_t n);
void sigmoid_row(const float* x, float* y, int64_t n);
void gelu_row(const float* x, float* y, int64_t n);
void gelu_tanh_row(const float* x, float* y, int64_t n);
void log_row(const float* x, float* y, int64_t n);
void sin_row(const float* x, float* y, int64_t n);
void cos_row(const float* x, float* y, int64_t n);
void atan_row(const float* x, float* y, int64_t n);

// y = softmax(scale · x), n > 0; y may be x. If all x are -infinity, all y are NaN.
void softmax_row(const float* x, float* y, int64_t n, float scale = 1);

struct RowStatistics {
  float mean, inverse;  // `inverse` is 1 / sqrt(variance + epsilon)
};
// y = (x - mean) / sqrt(variance + epsilon) · gain + bias, n > 0; y may be x, `bias` may be null.
RowStatistics normalize_row(const float* x, const float* gain, const float* bias, float epsilon, float* y, int64_t n);

}  // namespace backplane::cpu
