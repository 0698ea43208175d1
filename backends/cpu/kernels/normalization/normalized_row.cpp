// SPDX-License-Identifier: Apache-2.0
#include "kernels/normalization/normalized_row.h"

#include <cmath>

#include "kernels/normalization/layer_norm.h"

namespace backplane::cpu {

namespace {

RowStatistics define(const float* x, const float* gain, const float* bias, float epsilon, bool centred, float* y,
                     int64_t n) {
  double total = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  const double centre = centred ? total / static_cast<double>(n) : 0;
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - centre) * (x[i] - centre);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>((x[i] - centre) * factor) * gain[i] + (bias == nullptr ? 0 : bias[i]);
  return {static_cast<float>(centre), static_cast<float>(factor)};
}

}  // namespace

RowStatistics normalized_row(bool plain, const float* x, const float* gain, const float* bias, float epsilon,
                             bool centred, float* y, int64_t n) {
  if (plain) return define(x, gain, bias, epsilon, centred, y, n);
  if (centred) return normalize_row(x, gain, bias, epsilon, y, n);
  return {0, rms_row(x, gain, epsilon, y, n)};
}

}  // namespace backplane::cpu
