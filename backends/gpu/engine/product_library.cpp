// SPDX-License-Identifier: Apache-2.0
#include "engine/product_library.h"

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

}  // namespace backplane::gpu
