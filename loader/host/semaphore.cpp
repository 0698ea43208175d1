// SPDX-License-Identifier: Apache-2.0
#include "host/semaphore.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "host/cancel.h"

using backplane::Status;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC
using std::chrono::nanoseconds;

void bp_semaphore_t::signal(uint64_t value, const Status* failure) noexcept {
  // Notifies with the lock held, because a waiter may destroy the semaphore as soon as it sees the value.
  const std::lock_guard lock(mutex_);
  if (failure && value > value_) {
    if (failure_count_ == failures_.size()) merge_two();
    Failure& next = failures_[failure_count_++];
    next.first = value_ + 1;
    next.last = value;
    try {
      next.cause = *failure;
    } catch (...) {  // the value fails even if memory for the details is exhausted
      next.cause = {};
    }
  }
  value_ = std::max(value_, value);
  changed_.notify_all();
}

void bp_semaphore_t::merge_two() noexcept {
  const auto follows = [](const Failure& one, const Failure& next) { return next.first == one.last + 1; };
  const auto found = std::ranges::adjacent_find(failures_, follows);
  const auto one = found != failures_.end() ? found : failures_.begin();
  one->last = (one + 1)->last;
  std::move(one + 2, failures_.end(), one + 1);
  --failure_count_;
}

Status bp_semaphore_t::failure_of(uint64_t value) const {
  const std::span known(failures_.data(), failure_count_);
  const auto found = std::ranges::lower_bound(known, value, {}, &Failure::last);
  if (found == known.end() || found->first > value) return {};
  const Status& cause = found->cause;
  std::string text = "the work that should have brought the semaphore to " + std::to_string(value) + " failed";
  if (!cause.ok()) text.append(": ").append(cause.text());
  return Status(BP_DEPENDENCY_FAILED, std::move(text))
      .with_node(cause.node())
      .with_vendor_code(cause.vendor_code())
      .with_flags(cause.flags())
      .with_run(cause.run());
}

Status bp_semaphore_t::wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel) {
  const bool forever = deadline > static_cast<uint64_t>(INT64_MAX);
  const Clock::time_point end = forever ? Clock::time_point::max() : Clock::time_point(nanoseconds(deadline));

  {
    const std::lock_guard lock(mutex_);
    if (value <= value_) return failure_of(value);
  }
  // Created and destroyed without holding the lock, because its callback takes the lock.
  std::optional<backplane::CancelLink> link;
  if (cancel)
    link.emplace(
        *cancel,
        [](void* self) {
          auto& semaphore = *static_cast<bp_semaphore_t*>(self);
          const std::lock_guard lock(semaphore.mutex_);
          semaphore.changed_.notify_all();
        },
        this);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (value <= value_) return failure_of(value);
    const auto missing = [&] {
      return "the semaphore has not reached " + std::to_string(value) + ": its value is " + std::to_string(value_);
    };
    if (backplane::cancelled(cancel)) return {BP_CANCELLED, missing()};
    const Clock::time_point now = Clock::now();
    if (now >= end) return {BP_TIMED_OUT, missing()};
    if (forever)
      changed_.wait(lock);
    else
      changed_.wait_until(lock, end);
  }
}

Status bp_semaphore_t::query(uint64_t& out_value) const {
  const std::lock_guard lock(mutex_);
  out_value = value_;
  return failure_of(value_);
}

void bp_semaphore_t::reset(uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  value_ = value;
  failure_count_ = 0;
  changed_.notify_all();
}
