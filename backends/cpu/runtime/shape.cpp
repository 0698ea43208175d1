// SPDX-License-Identifier: Apache-2.0
#include "runtime/shape.h"

#include <string>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

int64_t product(std::span<const int64_t> factors) {
  int64_t n = 1;
  bool beyond = false;
  for (int64_t factor : factors) {
    if (factor == 0) return 0;
    beyond = beyond || __builtin_mul_overflow(n, factor, &n);
  }
  if (beyond) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED,
                     "the product of " + to_string(Shape(factors)) + " is too large for a 64-bit integer");
  }
  return n;
}

void throw_uncountable(const Shape& shape) {
  const bool negative = std::ranges::any_of(shape, [](int64_t extent) { return extent < 0; });
  const std::string text = "a tensor cannot have extents " + to_string(shape);
  if (negative) throw sdk::Error(BP_INVALID_ARGUMENT, text + ": one is negative");
  throw sdk::Error(BP_RESOURCE_EXHAUSTED, text + ": it would be too large for memory");
}

bool countable(const Shape& shape) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent < 0 || __builtin_mul_overflow(n, std::max<int64_t>(extent, 1), &n) || n > kMaxExtents) return false;
  }
  return empty || n <= kMaxElements;
}

}  // namespace backplane::cpu
