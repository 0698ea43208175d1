// SPDX-License-Identifier: Apache-2.0
// A run in progress, and whether it is the only one in this process, on any device. A run that is alone may use all
// cores; one of several leaves them to the others. Shortly after runs overlapped, no run counts as alone: if another
// caller merely pauses between its runs, threads woken in that moment would be in its way.
#pragma once

#include <atomic>
#include <chrono>

namespace backplane::cpu {

class ActiveRun {
 public:
  static constexpr std::chrono::milliseconds kQuiet{20};

  ActiveRun() {
    if (runs_.fetch_add(1, std::memory_order_relaxed) > 0) {
      last_overlap_.store(Clock::now().time_since_epoch(), std::memory_order_relaxed);
      return;
    }
    seen_ = last_overlap_.load(std::memory_order_relaxed);
    quiet_ = seen_ == kNever || Clock::now().time_since_epoch() - seen_ > kQuiet;
  }
  ~ActiveRun() { runs_.fetch_sub(1, std::memory_order_relaxed); }
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;

  // Whether no run was in progress when this one began, none started since, and none overlapped in the kQuiet before.
  bool alone() const { return quiet_ && last_overlap_.load(std::memory_order_relaxed) == seen_; }

  // Whether at least two runs are in progress.
  static bool several() { return runs_.load(std::memory_order_relaxed) > 1; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kNever{};

  static inline std::atomic<int> runs_ = 0;
  static inline std::atomic<Clock::duration> last_overlap_{kNever};  // when a run last began during another

  bool quiet_ = false;
  Clock::duration seen_ = kNever;  // last_overlap_ when this run began
};

}  // namespace backplane::cpu
