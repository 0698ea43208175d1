// SPDX-License-Identifier: Apache-2.0
// Implements bp_semaphore_t: a 64-bit number that only grows, with threads that wait for it, and a list of values that
// failed.
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

  // Sets the number to `value` if that is more, and wakes every waiter.
  void signal(uint64_t value) noexcept { signal(value, nullptr); }
  // Signals `value`; the values after the previous number, up to `value`, fail with `failure`.
  void fail(uint64_t value, const backplane::Status& failure) noexcept { signal(value, &failure); }
  // Ok once `value` is reached and has not failed; BP_DEPENDENCY_FAILED with the failure's detail, BP_CANCELLED or
  // BP_TIMED_OUT otherwise. `deadline` in ns on the monotonic clock, BP_FOREVER for none.
  backplane::Status wait(uint64_t value, uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  // Ok, or BP_DEPENDENCY_FAILED if the present value has failed. `out_value` is written in either case.
  backplane::Status query(uint64_t& out_value) const;
  // Sets any value, also a lower one, and forgets all failures.
  void reset(uint64_t value) noexcept;

 private:
  // The values from `first` to `last` failed.
  struct Failure {
    uint64_t first = 0, last = 0;
    backplane::Status cause;
  };

  void signal(uint64_t value, const backplane::Status* failure) noexcept;
  backplane::Status failure_of(uint64_t value) const;  // ok if `value` has not failed

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_;
  // Ascending. When all are used, the two oldest are merged, with the values between them.
  std::array<Failure, 16> failures_;
  size_t failure_count_ = 0;
};
