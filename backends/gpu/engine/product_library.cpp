// SPDX-License-Identifier: Apache-2.0
#include "engine/product_library.h"

#include <algorithm>

#include "engine/shape.h"

namespace backplane::gpu {

std::string ProductProblem::text() const {
  std::string all =
      std::string(type_name(dtype)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  if (batch != 1) all += " batch " + std::to_string(batch);
  if (a_repeats) all += " a1";
  if (b_repeats) all += " b1";
  if (a_transposed) all += " at";
  if (b_transposed) all += " bt";
  if (beta != 0) all += " c";
  if (has_bias) all += " bias";
  if (activation == Activation::kRelu) all += " relu";
  if (activation == Activation::kTanhGelu) all += " gelu";
  if (compute_types != 0) all += " types " + std::to_string(compute_types);
  return all;
}

LibraryOperands ProductProblem::operands() const {
  const auto bytes = [&](int64_t rows, int64_t columns, int64_t count) {
    return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * static_cast<uint64_t>(count) *
           bytes_of(dtype);
  };
  const uint64_t y = bytes(m, n, batch);
  return {std::max({bytes(m, k, a_repeats ? 1 : batch), bytes(k, n, b_repeats ? 1 : batch), y}), y};
}

}  // namespace backplane::gpu
