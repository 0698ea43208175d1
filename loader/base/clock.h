// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace backplane {

// The monotonic clock in nanoseconds. Deadlines and trace spans are measured with it.
inline uint64_t monotonic_now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Whether the deadline has passed. 0: there is none.
inline bool passed(uint64_t deadline) {
  return deadline && deadline <= monotonic_now();
}

}  // namespace backplane
