// SPDX-License-Identifier: Apache-2.0
// The memory and time that importing and placing one model may take. Without limits, a file of a few bytes could use
// any amount of memory and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace backplane {

// The framework's limits. 0: unlimited. nullopt: a default that depends on the size of the file.
struct ImportLimits {
  std::optional<uint64_t> bytes;
  std::optional<double> seconds;
};

// Counts the bytes that an import or a placement allocates and checks the time. Not thread-safe: each import or
// placement uses a budget that no other thread uses.
class Budget {
 public:
  // Thrown when the budget is exhausted, as std::bad_alloc is when memory runs out, and within place() when placing is
  // cancelled. Does not leave parse(), canonicalize(), infer() or place(): they return its status.
  struct Exhausted {
    Status status;
  };

  // The budget for a file of `file_bytes` bytes. External data is mapped, so it does not count.
  Budget(const ImportLimits& limits, uint64_t file_bytes);
  // A new budget with the same limits, of which nothing is used. Its time starts now.
  Budget fresh() const { return {bytes_, seconds_}; }

  // Charges `bytes` before they are allocated. The error message names the activity `doing`, for example "inlining
  // functions".
  void charge(uint64_t bytes, std::string_view doing) {
    used_ = bytes > UINT64_MAX - used_ ? UINT64_MAX : used_ + bytes;
    if (used_ > bytes_) [[unlikely]]
      fail_bytes(bytes, doing);
    if (++steps_ % kStepsPerLook == 0) look(doing);
  }
  // Returns `bytes`, which the caller has freed, to the budget.
  void release(uint64_t bytes) { used_ -= bytes < used_ ? bytes : used_; }
  // Counts a step. Every 256th call of `step` or `charge` checks the time, and throws if the limit has passed. For
  // loops that allocate little.
  void step(std::string_view doing) {
    if (++steps_ % kStepsPerLook == 0) look(doing);
  }
  // Checks the time, and throws if the limit has passed. For loops whose steps take long.
  void look(std::string_view doing) const;

 private:
  static constexpr uint32_t kStepsPerLook = 256;

  Budget(uint64_t bytes, double seconds);
  [[noreturn]] void fail_bytes(uint64_t asked, std::string_view doing) const;

  uint64_t bytes_;
  double seconds_;  // 0: no limit
  std::chrono::steady_clock::time_point start_;
  uint64_t used_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace backplane
