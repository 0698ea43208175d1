// SPDX-License-Identifier: Apache-2.0
#include "host/semaphore.h"

#include <algorithm>
#include <chrono>

#include "host/cancel.h"

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC
using std::chrono::nanoseconds;

void bp_semaphore_t::signal(uint64_t value, bp_status_t status) {
  // Waiters are woken under the lock: one of them may destroy the semaphore as soon as it holds the value.
  std::lock_guard lock(mutex_);
  if (status != BP_OK && failure_ == BP_OK) {
    failure_ = status;
    good_ = value_;
  }
  value_ = std::max(value_, value);
  changed_.notify_all();
}

bp_status_t bp_semaphore_t::wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel) {
  // A token may be set from a signal handler, which cannot notify: it is looked at this often.
  constexpr nanoseconds kCancelSlice = std::chrono::milliseconds(2);
  const bool forever = deadline > static_cast<uint64_t>(INT64_MAX);
  const Clock::time_point end = forever ? Clock::time_point::max() : Clock::time_point(nanoseconds(deadline));

  std::unique_lock lock(mutex_);
  for (;;) {
    if (value <= (failure_ == BP_OK ? value_ : good_)) return BP_OK;
    if (failure_ != BP_OK) return BP_DEPENDENCY_FAILED;
    if (backplane::cancelled(cancel)) return BP_CANCELLED;
    const Clock::time_point now = Clock::now();
    if (now >= end) return BP_TIMED_OUT;
    if (forever && !cancel)
      changed_.wait(lock);
    else
      changed_.wait_until(lock, cancel ? std::min(end, now + kCancelSlice) : end);
  }
}

bp_status_t bp_semaphore_t::query(uint64_t* out_value) const {
  std::lock_guard lock(mutex_);
  if (out_value) *out_value = value_;
  return failure_;
}
