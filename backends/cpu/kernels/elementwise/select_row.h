// SPDX-License-Identifier: Apache-2.0
// The operator Where for one row, for elements of 1, 2, 4, 8 or 16 bytes.
#pragma once

#include <cstdint>

#include "kernels/common/dtype_dispatch.h"

namespace backplane::cpu {

struct SelectRow {
  const Bool* condition;
  const void *a, *b;
  void* result;
  int64_t n;
  int64_t condition_stride, a_stride, b_stride;  // in elements; 0 repeats a single element
};

// Computes result = condition ? a : b for elements of `size` bytes.
void select_row(const SelectRow& row, int64_t size);

}  // namespace backplane::cpu
