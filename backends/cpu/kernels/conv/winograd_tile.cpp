// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/winograd_tile.h"

#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

using Lanes = LanesOf<kWinogradLanes>::type;

// The points are 0, ±a, ±b and infinity. They and all their products below are exact in fp32. Errors are smaller than
// with the points ±1 and ±2, because the largest numbers in the matrices are smaller.
constexpr float kA = 0.625f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;

// Six inputs of a line, `step` apart, become six. Each is the sum of the inputs times the coefficients of
// x (x² - a²) (x² - b²) without the factor of one point.
[[gnu::always_inline]] inline void transform_inputs(const Lanes* d, Lanes* to, int64_t step) {
  const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const Lanes even_a = d4 - kB2 * d2, odd_a = kA * (d3 - kB2 * d1);
  const Lanes even_b = d4 - kA2 * d2, odd_b = kB * (d3 - kA2 * d1);
  to[0] = kA2 * kB2 * d0 - (kA2 + kB2) * d2 + d4;
  to[step] = even_a + odd_a;
  to[2 * step] = even_a - odd_a;
  to[3 * step] = even_b + odd_b;
  to[4 * step] = even_b - odd_b;
  to[5 * step] = kA2 * kB2 * d1 - (kA2 + kB2) * d3 + d5;
}

// Six sums of a line, `step` apart, become four results, `to_step` apart: the polynomial's values at the points,
// weighted by the points' powers.
[[gnu::always_inline]] inline void transform_outputs(const Lanes* m, int64_t step, Lanes* to, int64_t to_step) {
  const Lanes m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
  const Lanes even_a = m1 + m2, odd_a = m1 - m2, even_b = m3 + m4, odd_b = m3 - m4;
  to[0] = m[0] + even_a + even_b;
  to[to_step] = kA * odd_a + kB * odd_b;
  to[2 * to_step] = kA2 * even_a + kB2 * even_b;
  to[3 * to_step] = kA2 * kA * odd_a + kB2 * kB * odd_b + m[5 * step];
}

[[gnu::always_inline]] inline void inputs_of(const WinogradInputs& t) {
  constexpr int64_t kIn = kWinogradInputs;
  Lanes d[kWinogradProducts];
  const bool is_inside = t.row_first == 0 && t.row_last == kIn && t.column_first == 0 && t.column_last == kIn;
  for (int64_t r = 0; r < kIn; ++r) {
    const float* row = t.x + r * t.x_row;
    const bool is_row = r >= t.row_first && r < t.row_last;
#pragma GCC unroll 6
    for (int64_t c = 0; c < kIn; ++c) {
      const bool is_there = is_inside || (is_row && c >= t.column_first && c < t.column_last);
      d[r * kIn + c] = is_there ? *reinterpret_cast<const Lanes*>(row + c * kWinogradLanes) : Lanes{};
    }
  }
#pragma GCC unroll 6
  for (int64_t c = 0; c < kIn; ++c) transform_inputs(d + c, d + c, kIn);
  for (int64_t r = 0; r < kIn; ++r) {
    Lanes line[kIn];
    transform_inputs(d + r * kIn, line, 1);
#pragma GCC unroll 6
    for (int64_t c = 0; c < kIn; ++c) *reinterpret_cast<Lanes*>(t.v + (r * kIn + c) * t.v_product) = line[c];
  }
}

[[gnu::always_inline]] inline void outputs_of(const WinogradOutputs& t) {
  constexpr int64_t kIn = kWinogradInputs, kOut = kWinogradOutputs;
  Lanes half[kOut * kIn];  // [result row][column of the products]
  for (int64_t c = 0; c < kIn; ++c) {
    Lanes m[kIn];
#pragma GCC unroll 6
    for (int64_t r = 0; r < kIn; ++r) m[r] = *reinterpret_cast<const Lanes*>(t.m + (r * kIn + c) * t.m_product);
    transform_outputs(m, 1, half + c, kIn);
  }
  const Lanes compensation = *reinterpret_cast<const Lanes*>(t.compensation);
  const Lanes bias = *reinterpret_cast<const Lanes*>(t.bias);
  for (int64_t r = 0; r < t.rows; ++r) {
    Lanes line[kOut];
    transform_outputs(half + r * kIn, 1, line, 1);
    for (int64_t c = 0; c < t.columns; ++c) {
      const int64_t at = r * t.y_row + c * kWinogradLanes;
      Lanes sum = line[c] + compensation;
      if (t.add != nullptr) sum += *reinterpret_cast<const Lanes*>(t.add + at);
      sum += bias;
      if (t.rectify) sum = sum < 0 ? Lanes{} : sum;
      *reinterpret_cast<Lanes*>(t.y + at) = sum;
    }
  }
}

FOR_AVX2 void inputs_avx2(const WinogradInputs& tile) {
  inputs_of(tile);
}
FOR_AVX2 void outputs_avx2(const WinogradOutputs& tile) {
  outputs_of(tile);
}
void inputs_baseline(const WinogradInputs& tile) {
  inputs_of(tile);
}
void outputs_baseline(const WinogradOutputs& tile) {
  outputs_of(tile);
}

}  // namespace

WinogradTransforms winograd_transforms() {
  if (processor().has(Instructions::kAvx2)) return {inputs_avx2, outputs_avx2};
  return {inputs_baseline, outputs_baseline};
}

void transform_winograd_weights(const float* weights, float scale, float* to, int64_t step) {
  const double a = kA, b = kB, a2 = a * a, b2 = b * b;
  const double at_0 = 1 / (a2 * b2), at_a = 1 / (2 * a2 * (a2 - b2)), at_b = 1 / (2 * b2 * (b2 - a2));
  const double g[kWinogradInputs][3] = {{at_0, 0, 0},
                                        {at_a, at_a * a, at_a * a2},
                                        {at_a, -at_a * a, at_a * a2},
                                        {at_b, at_b * b, at_b * b2},
                                        {at_b, -at_b * b, at_b * b2},
                                        {0, 0, 1}};
  double rows[kWinogradInputs][3];
  for (int i = 0; i < kWinogradInputs; ++i)
    for (int c = 0; c < 3; ++c)
      rows[i][c] = g[i][0] * static_cast<double>(weights[c]) + g[i][1] * static_cast<double>(weights[3 + c]) +
                   g[i][2] * static_cast<double>(weights[6 + c]);
  for (int i = 0; i < kWinogradInputs; ++i)
    for (int j = 0; j < kWinogradInputs; ++j)
      to[(i * kWinogradInputs + j) * step] = static_cast<float>(
          static_cast<double>(scale) * (rows[i][0] * g[j][0] + rows[i][1] * g[j][1] + rows[i][2] * g[j][2]));
}

}  // namespace backplane::cpu
