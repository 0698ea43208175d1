// SPDX-License-Identifier: Apache-2.0
// Matrix products computed by a driver's library, such as cuBLASLt. A driver has one library or none
// (Driver::products).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"

namespace backplane::gpu {

class DeviceKernel;

// batch products y = activation(alpha a b + beta c + bias), summed in fp32, or in fp64 for DOUBLE. All matrices are
// dense, row-major and of the same type: a is m × k, b is k × n, c and y are m × n.
struct ProductProblem {
  enum class Activation { kNone, kRelu, kTanhGelu };

  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_repeats = false, b_repeats = false;        // all products use the same matrix
  bool a_transposed = false, b_transposed = false;  // a is stored as k × m, b as n × k
  float alpha = 1, beta = 0;                        // without c, beta is 0
  bool has_bias = false;                            // n elements, added to each row
  Activation activation = Activation::kNone;

  double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }
  // Everything that an algorithm depends on, as the key of stored choices: "f32 128x768x3072 bt bias relu".
  std::string text() const;
};

// One of a library's ways to compute a product. Valid for all problems with the same text().
struct ProductAlgorithm {
  std::array<uint64_t, 8> data{};  // the library's own
  uint64_t workspace_bytes = 0;
};

// The arguments of a product's kernel. Those that the problem does not have are not set.
enum ProductArgument : uint32_t { kProductA, kProductB, kProductC, kProductBias, kProductY, kProductWorkspace };

// Thread-safe. Opened by the first call that needs it.
class ProductLibrary {
 public:
  virtual ~ProductLibrary() = default;
  // Name and version, for keys of stored choices and for messages. Empty if the library cannot be opened.
  virtual std::string identity() const = 0;
  // The types, among BP_COMPUTE_*, in which products of `dtype` are computed if that is allowed.
  virtual uint32_t compute_types(bp_dtype_t dtype) const = 0;
  // At most `most` algorithms, best first by the library's own estimate. If there are none, sets `why_none`.
  virtual std::vector<ProductAlgorithm> algorithms(const ProductProblem& problem, size_t most,
                                                   std::string& why_none) const = 0;
  // A kernel whose arguments are ProductArguments; ranges are ignored. Throws sdk::Error.
  virtual std::shared_ptr<DeviceKernel> kernel(const ProductProblem& problem,
                                               const ProductAlgorithm& algorithm) const = 0;
};

}  // namespace backplane::gpu
