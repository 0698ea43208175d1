// SPDX-License-Identifier: Apache-2.0
// A run in progress, and whether it is alone in this process, on whatever device. A run that is alone may have all
// cores; one of several leaves them to the others. Callers that think for a moment between their runs are not alone
// either: what woke a second thread for a moment would be in their way.
#pragma once

#include <atomic>
#include <chrono>

namespace backplane::cpu {

class Presence {
 public:
  static constexpr std::chrono::milliseconds kQuiet{20};

  Presence() {
    if (runs_.fetch_add(1, std::memory_order_relaxed) > 0) {
      crowded_at_.store(Clock::now().time_since_epoch(), std::memory_order_relaxed);
      return;
    }
    seen_ = crowded_at_.load(std::memory_order_relaxed);
    quiet_ = seen_ == kNever || Clock::now().time_since_epoch() - seen_ > kQuiet;
  }
  ~Presence() { runs_.fetch_sub(1, std::memory_order_relaxed); }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // No other run is in progress, none came while this one was, and there was one alone at a time for kQuiet before it.
  bool alone() const { return quiet_ && crowded_at_.load(std::memory_order_relaxed) == seen_; }

  // Two runs are in progress.
  static bool crowded() { return runs_.load(std::memory_order_relaxed) > 1; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kNever{};

  static inline std::atomic<int> runs_ = 0;
  static inline std::atomic<Clock::duration> crowded_at_{kNever};  // when a run last found another

  bool quiet_ = false;
  Clock::duration seen_ = kNever;  // crowded_at_ when this run began
};

}  // namespace backplane::cpu
