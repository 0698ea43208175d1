// SPDX-License-Identifier: Apache-2.0
// Implements bp_semaphore_t: a 64-bit value that is raised by signals and that threads can wait for. Values can be
// marked as failed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "backplane/host.h"
#include "base/status.h"

// All members are thread-safe, except that no other call may run during `reset`.
struct bp_semaphore_t {
 public:
  explicit bp_semaphore_t(uint64_t value = 0) : value_(value) {}

  // Raises the semaphore to `value`, if its value is lower, and wakes all waiters.
  void signal(uint64_t value) noexcept { signal(value, nullptr); }
  // Signals `value`. All values above the previous value, up to `value`, have then failed with `failure`.
  void fail(uint64_t value, const backplane::Status& failure) noexcept { signal(value, &failure); }
  // Returns OK once `value` is reached, if it has not failed. Otherwise BP_DEPENDENCY_FAILED with the details of the
  // failure, BP_CANCELLED or BP_TIMED_OUT. `deadline` is in ns on the monotonic clock, or BP_FOREVER.
  backplane::Status wait(uint64_t value, uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  // Writes the current value. Returns OK, or BP_DEPENDENCY_FAILED if that value has failed.
  backplane::Status query(uint64_t& out_value) const;
  // Sets the value, which may be lower than before, and forgets all failures.
  void reset(uint64_t value) noexcept;

 private:
  // All values from `first` to `last` have failed.
  struct Failure {
    uint64_t first = 0, last = 0;
    backplane::Status cause;
  };

  void signal(uint64_t value, const backplane::Status* failure) noexcept;
  void merge_two() noexcept;
  backplane::Status failure_of(uint64_t value) const;  // OK if `value` has not failed

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_;
  // Ascending. When the array is full, two records without a value between them are merged, or else the two oldest. The
  // values between those then count as failed too.
  std::array<Failure, 16> failures_;
  size_t failure_count_ = 0;
};
