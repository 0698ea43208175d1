// SPDX-License-Identifier: Apache-2.0
// Limits the memory that a device allocates (weight copies, arenas, runs and so on), without the framework's tensors.
#pragma once

#include <atomic>
#include <cstdint>

namespace backplane::cpu {

class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }

  // Adds the bytes to those in use. Throws sdk::Error if the sum would exceed the limit. [any thread]
  void reserve(int64_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) > limit_ - bytes) refuse(bytes);
  }
  void release(int64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Throws as `reserve` does, but does not count the bytes.
  void check(int64_t bytes) const {
    if (used() > limit_ - bytes) throw_too_large(bytes);
  }

 private:
  [[noreturn]] void refuse(int64_t bytes);
  [[noreturn]] void throw_too_large(int64_t bytes) const;

  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

}  // namespace backplane::cpu
