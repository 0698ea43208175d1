// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/wide_product.h"

#include <algorithm>
#include <vector>

#include "kernels/simd/clones.h"
#include "runtime/kernel.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kVectorBytes = 64;
constexpr int kRows = 6;
constexpr int kVectors = 2;                   // vectors per row of a panel, which is a copy of some columns of b
constexpr int64_t kRowsAtOnce = 128 * kRows;  // rows multiplied by a panel between two checks for cancellation

template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
constexpr int64_t kPanel = kVectors* kVectorBytes / static_cast<int64_t>(sizeof(T));

// Computes `kCount` rows of c for one panel and stores only the first `columns` columns.
template <class T, int kCount>
[[gnu::always_inline]] inline void multiply_tile(const T* a, int64_t k, const T* panel, T* c, int64_t n,
                                                 int64_t columns) {
  using Vector = typename Lanes<T>::type;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
  Vector sums[kCount][kVectors] = {};
  for (int64_t l = 0; l < k; ++l) {
    const Vector b0 = *reinterpret_cast<const Vector*>(panel + l * kPanel<T>);
    const Vector b1 = *reinterpret_cast<const Vector*>(panel + l * kPanel<T> + kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
      sums[r][0] += a[r * k + l] * b0;
      sums[r][1] += a[r * k + l] * b1;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    T row[kPanel<T>];
    *reinterpret_cast<Vector*>(row) = sums[r][0];
    *reinterpret_cast<Vector*>(row + kLanes) = sums[r][1];
    for (int64_t j = 0; j < columns; ++j) c[r * n + j] = row[j];
  }
}

template <class T>
struct Task {
  int64_t m, n, k;
  const T *a, *b;
  T* c;
};

// Copies columns [first, first + kPanel) of b into `panel`, zero-padded, and multiplies all rows of a by them.
template <class T>
[[gnu::always_inline]] inline void multiply_panel(const Task<T>& t, int64_t first, T* panel) {
  const int64_t columns = std::min(kPanel<T>, t.n - first);
  for (int64_t l = 0; l < t.k; ++l) {
    for (int64_t j = 0; j < kPanel<T>; ++j) panel[l * kPanel<T> + j] = j < columns ? t.b[l * t.n + first + j] : 0;
  }
  int64_t i = 0;
  for (; i + kRows <= t.m; i += kRows)
    multiply_tile<T, kRows>(t.a + i * t.k, t.k, panel, t.c + i * t.n + first, t.n, columns);
  for (; i < t.m; ++i) multiply_tile<T, 1>(t.a + i * t.k, t.k, panel, t.c + i * t.n + first, t.n, columns);
}

CLONED void multiply_doubles(const Task<double>& t, int64_t first, double* panel) {
  multiply_panel(t, first, panel);
}
CLONED void multiply_words(const Task<uint32_t>& t, int64_t first, uint32_t* panel) {
  multiply_panel(t, first, panel);
}
CLONED void multiply_long_words(const Task<uint64_t>& t, int64_t first, uint64_t* panel) {
  multiply_panel(t, first, panel);
}

template <class T>
void run(void (*multiply)(const Task<T>&, int64_t, T*), int64_t m, int64_t n, int64_t k, const void* a, const void* b,
         void* c) {
  const Task<T> task{m, n, k, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c)};
  parallel((n + kPanel<T> - 1) / kPanel<T>, 1 + (1 << 16) / (1 + m * k * kPanel<T>), [&](int64_t begin, int64_t end) {
    std::vector<T> panel(static_cast<size_t>(k * kPanel<T>));
    Pace pace;
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t row = 0; row < m; row += kRowsAtOnce) {
        const Task<T> part{std::min(kRowsAtOnce, m - row), n, k, task.a + row * k, task.b, task.c + row * n};
        multiply(part, p * kPanel<T>, panel.data());
        pace.spend(part.m * k * kPanel<T>);
      }
    }
  });
}

}  // namespace

bool has_wide_product(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_DOUBLE || dtype == BP_DTYPE_INT32 || dtype == BP_DTYPE_UINT32 || dtype == BP_DTYPE_INT64 ||
         dtype == BP_DTYPE_UINT64;
}

void wide_product(bp_dtype_t dtype, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) {
  if (dtype == BP_DTYPE_DOUBLE)
    run(clone_of<multiply_doubles>, m, n, k, a, b, c);
  else if (dtype == BP_DTYPE_INT32 || dtype == BP_DTYPE_UINT32)
    run(clone_of<multiply_words>, m, n, k, a, b, c);
  else
    run(clone_of<multiply_long_words>, m, n, k, a, b, c);
}

}  // namespace backplane::cpu
