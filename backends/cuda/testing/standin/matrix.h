// SPDX-License-Identifier: Apache-2.0
// Test code: a product of column-major matrices by plain loops, as the stand-in for cuBLASLt computes it.
#pragma once

#include <cstdint>

#include "driver/cublaslt.h"

namespace standin {

namespace lt = backplane::cuda::lt;

struct Matrix {
  lt::DataType type = lt::kF32;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batch = 1;
  int64_t stride = 0;  // in elements

  uint64_t element_bytes() const;
  uint64_t bytes() const;  // from the first element to the end of the last
};

// d = epilogue(alpha op(a) op(b) + beta c + bias)
struct MatrixProduct {
  lt::ComputeType compute = lt::kCompute32F;
  bool a_transposed = false, b_transposed = false;
  uint32_t epilogue = lt::kNoEpilogue;
  Matrix a, b, c, d;
  double alpha = 1, beta = 0;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr, *bias = nullptr;
  void* d_data = nullptr;

  uint64_t inner() const { return a_transposed ? a.rows : a.columns; }
  bool is_consistent() const;  // whether extents, types and strides fit each other
  void compute_all() const;
};

}  // namespace standin
