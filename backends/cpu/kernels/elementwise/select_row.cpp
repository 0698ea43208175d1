// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/select_row.h"

#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

// Computes a row whose operands a and b have stride 1, or stride 0 where a single element is repeated.
template <class T>
[[gnu::always_inline]] inline void select(const SelectRow& row) {
  const auto* c = reinterpret_cast<const uint8_t*>(row.condition);
  const T *a = static_cast<const T*>(row.a), *b = static_cast<const T*>(row.b);
  T* r = static_cast<T*>(row.result);
  const int64_t n = row.n;
  if (row.a_stride == 1 && row.b_stride == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const T x = a[i], y = b[i];
      r[i] = c[i] != 0 ? x : y;
    }
  } else if (row.a_stride == 1) {
    const T y = b[0];
    for (int64_t i = 0; i < n; ++i) {
      const T x = a[i];
      r[i] = c[i] != 0 ? x : y;
    }
  } else if (row.b_stride == 1) {
    const T x = a[0];
    for (int64_t i = 0; i < n; ++i) {
      const T y = b[i];
      r[i] = c[i] != 0 ? x : y;
    }
  } else {
    const T x = a[0], y = b[0];
    for (int64_t i = 0; i < n; ++i) r[i] = c[i] != 0 ? x : y;
  }
}

CLONED void select_1(const SelectRow& row) {
  select<uint8_t>(row);
}
CLONED void select_2(const SelectRow& row) {
  select<uint16_t>(row);
}
CLONED void select_4(const SelectRow& row) {
  select<uint32_t>(row);
}
CLONED void select_8(const SelectRow& row) {
  select<uint64_t>(row);
}

}  // namespace

void select_row(const SelectRow& row, int64_t size) {
  const bool dense = row.condition_stride == 1 && row.a_stride <= 1 && row.b_stride <= 1;
  if (dense && size == 1) return clone_of<select_1>(row);
  if (dense && size == 2) return clone_of<select_2>(row);
  if (dense && size == 4) return clone_of<select_4>(row);
  if (dense && size == 8) return clone_of<select_8>(row);
  dispatch_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a = static_cast<const T*>(row.a), *b = static_cast<const T*>(row.b);
    for (int64_t i = 0; i < row.n; ++i)
      static_cast<T*>(row.result)[i] =
          row.condition[i * row.condition_stride] ? a[i * row.a_stride] : b[i * row.b_stride];
  });
}

}  // namespace backplane::cpu
