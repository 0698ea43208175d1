// SPDX-License-Identifier: Apache-2.0
// The operators of this backend.
#pragma once

#include "backplane/sdk.hpp"

namespace null_backend {

// What is run for a node: y = f(a, b) over `count` elements. `b` is NULL for operators of one input.
struct Kernel {
  void (*run)(const float* a, const float* b, float* y, uint64_t count);
};

// The newest operator set of each domain that the rows were written for.
inline constexpr bp_opset_t kOpsets[] = {{{"", 0}, 27, 0}};

// Every row answers coverage and makes the kernel.
extern const backplane::sdk::OpTable<Kernel> kOps;

}  // namespace null_backend
