// SPDX-License-Identifier: Apache-2.0
// Pseudo-random inputs for tests of whole networks, the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace backplane::cpu::testing {

using Extents = std::vector<int64_t>;

// Returns pseudo-random numbers between -1 and 1.
inline std::vector<float> noise(int64_t count, uint32_t seed) {
  std::vector<float> data(static_cast<size_t>(count));
  for (float& x : data) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) / 8388608.0f - 1;
  }
  return data;
}

inline int64_t product(const Extents& extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

}  // namespace backplane::cpu::testing
