// SPDX-License-Identifier: Apache-2.0
// Counts the runs in progress in this process, on all devices of this backend, and reports whether a run is the only
// one. A parallel loop outside of runs counts as a run (parallel.cpp). A run that is alone may use all cores; runs that
// overlap leave cores to each other. For kQuiet after an overlap ends, no new run counts as alone: another caller may
// only be pausing between two runs, and the threads of a run that is alone would compete with that caller's next run.
#pragma once

#include <atomic>
#include <chrono>

namespace backplane::cpu {

class ActiveRun {
 public:
  static constexpr std::chrono::milliseconds kQuiet{20};

  ActiveRun() {
    if (runs_.fetch_add(1, std::memory_order_relaxed) > 0) {
      overlap();
      return;
    }
    seen_ = last_overlap_.load(std::memory_order_relaxed);
    quiet_ = seen_ == kNever || Clock::now().time_since_epoch() - seen_ > kQuiet;
  }
  ~ActiveRun() {
    if (runs_.fetch_sub(1, std::memory_order_relaxed) > 1) overlap();
  }
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;

  // Whether this run began with no other in progress, no other has begun since, and no runs overlapped in the
  // kQuiet before it began.
  bool alone() const { return quiet_ && last_overlap_.load(std::memory_order_relaxed) == seen_; }

  // Whether at least two runs are in progress.
  static bool several() { return runs_.load(std::memory_order_relaxed) > 1; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kNever{};

  static void overlap() { last_overlap_.store(Clock::now().time_since_epoch(), std::memory_order_relaxed); }

  static inline std::atomic<int> runs_ = 0;
  // When runs last overlapped.
  static inline std::atomic<Clock::duration> last_overlap_{kNever};

  bool quiet_ = false;
  Clock::duration seen_ = kNever;  // last_overlap_ when this run began, if it began with no other in progress
};

}  // namespace backplane::cpu
