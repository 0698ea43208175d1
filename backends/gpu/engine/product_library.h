// SPDX-License-Identifier: Apache-2.0
// Matrix products computed by a driver's library, such as cuBLASLt (Driver::products).
#pragma once

#include "engine/library.h"

namespace backplane::gpu {

// `batch` products y = activation(alpha a b + beta c + bias), summed in fp32, or in fp64 for DOUBLE. All matrices are
// dense, row-major and of the same type: a is m × k, b is k × n, c and y are m × n.
struct ProductProblem {
  static constexpr const char* kKind = "product";
  enum class Activation { kNone, kRelu, kTanhGelu };

  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_repeats = false, b_repeats = false;        // all products use the same a, or b
  bool a_transposed = false, b_transposed = false;  // a is stored as k × m, b as n × k
  float alpha = 1, beta = 0;                        // without c, beta is 0
  bool has_bias = false;                            // n elements, added to each row
  Activation activation = Activation::kNone;

  double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }
  std::string text() const;  // "f32 128x768x3072 bt bias relu"
  LibraryOperands operands() const;
};
using ProductLibrary = Library<ProductProblem>;

}  // namespace backplane::gpu
