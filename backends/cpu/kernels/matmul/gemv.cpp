// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/gemv.h"

#include <algorithm>

#include "kernels/simd/clones.h"
#include "runtime/kernel.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kTaskElements = int64_t{1} << 16;  // elements of the matrix per task
constexpr int64_t kColumns = 1024;                   // columns per strip; their sums stay in the first-level cache

// Processes four rows of b at once, with two vectors of sums each, to hide the latency of the additions.
CLONED void dot_rows(int64_t rows, int64_t k, const float* x, const float* b, float* y) {
  for (int64_t first = 0; first < rows; first += 4) {
    const int64_t count = rows - first < 4 ? rows - first : 4;
    const float* row[4];
    for (int64_t r = 0; r < 4; ++r) row[r] = b + (first + (r < count ? r : 0)) * k;
    float sums[4][2 * kLanes] = {};
    int64_t i = 0;
    for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t l = 0; l < 2 * kLanes; ++l) sums[r][l] += x[i + l] * row[r][i + l];
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t half = kLanes; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; ++l) sums[r][l] += sums[r][l + half];
      }
      float sum = sums[r][0];
      for (int64_t j = i; j < k; ++j) sum += x[j] * row[r][j];
      y[first + r] = sum;
    }
  }
}

CLONED void add_rows(int64_t k, int64_t columns, int64_t stride, const float* x, const float* b, float* y) {
  for (int64_t j = 0; j < columns; ++j) y[j] = 0;
  int64_t l = 0;
  for (; l + 4 <= k; l += 4) {
    const float *b0 = b + l * stride, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    const float x0 = x[l], x1 = x[l + 1], x2 = x[l + 2], x3 = x[l + 3];
    for (int64_t j = 0; j < columns; ++j) y[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
  }
  for (; l < k; ++l) {
    for (int64_t j = 0; j < columns; ++j) y[j] += x[l] * b[l * stride + j];
  }
}

}  // namespace

void gemv_transposed(int64_t m, int64_t n, int64_t k, const float* x, const float* b, float* y) {
  // Multiply a few rows of b by every row of x while they are in the cache.
  const int64_t block = std::max<int64_t>(4, kTaskElements / std::max<int64_t>(1, k) / 4 * 4);
  parallel((n + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block, rows = std::min(block, n - first);
      for (int64_t r = 0; r < m; ++r) clone_of<dot_rows>(rows, k, x + r * k, b + first * k, y + r * n + first);
    }
  });
}

void gemv(int64_t m, int64_t n, int64_t k, const float* x, const float* b, float* y) {
  const int64_t columns = std::clamp<int64_t>((n + 1) / 2, 64, kColumns);
  parallel((n + columns - 1) / columns, 1 + kTaskElements / (1 + columns * k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * columns, count = std::min(columns, n - first);
      for (int64_t r = 0; r < m; ++r) clone_of<add_rows>(k, count, n, x + r * k, b + first, y + r * n + first);
    }
  });
}

}  // namespace backplane::cpu
