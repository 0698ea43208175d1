// SPDX-License-Identifier: Apache-2.0
// A team of threads that runs the loops of a run that is alone (active_run.h), one loop at a time. Between loops, its
// helper threads spin for kSpinTime and then sleep: a loop that soon follows another starts without a system call, and
// an idle team uses no CPU time. While several runs are in progress, helpers sleep at once.
//
// If another process takes a helper's core in the middle of a chunk, the helper stops for milliseconds, a time slice of
// the system. The caller detects this, moves the helper to the caller's core and sleeps until the chunk is done. The
// helper then leaves that core and backs off, that is, it sleeps, at most as long as it has worked since it last backed
// off. Otherwise, the scheduler would give the helper more than its share of the other process's core
// (docs/decisions/0009).
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "runtime/thread_state.h"

namespace backplane::cpu {

// A parallel loop: body(self, begin, end) over [0, count), cut into `chunks` whose sizes differ by at most one.
struct Loop {
  int64_t count;
  int64_t chunks;
  void (*body)(void* self, int64_t begin, int64_t end);
  void* self;
  // The caller's budget and watch, used by every thread that runs a chunk. With a watch, each chunk is cut into parts
  // of at least `grain` elements (the last may be smaller), and the watch is checked before each part.
  Budget* budget = nullptr;
  const Watch* watch = nullptr;
  int64_t grain = 1;

  void run_chunk(int64_t chunk) const;
  void run_part(int64_t begin, int64_t end) const;
};

// During its lifetime, the calling thread uses the budget and watch of the loop's caller.
class WorkFor {
 public:
  explicit WorkFor(const Loop& loop) : budget_(loop.budget), watch_(loop.watch) {}

 private:
  UseBudget budget_;
  UseWatch watch_;
};

class Team {
 public:
  // How long helpers spin before they sleep, so that loops in quick succession find them awake.
  static constexpr std::chrono::microseconds kSpinTime{50};

  // `threads` includes the caller's thread. The `threads` - 1 helpers start with the first loop. There are fewer if the
  // process may use fewer cores, or if the system refuses to create more threads.
  explicit Team(int threads);
  // No loop may be running.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs the loop on the helpers and the calling thread. Returns false without running anything if the team is busy
  // with another loop or has no helpers. `caller_index` is the caller's thread_index(); helpers get the other indices.
  // If a chunk throws, chunks that have not begun are skipped, and the first exception is rethrown when no chunk is
  // running. [any thread]
  bool run(const Loop& loop, int caller_index);

  // Returns the calling helper's thread_index(), or -1 if the calling thread is not a helper. [any thread]
  static int helper_thread_index();

  // How often a caller moved a helper to the caller's core. [any thread]
  uint64_t migrations() const { return migrations_.load(std::memory_order_relaxed); }

 private:
  // State shared by the caller and one helper. The words that threads wait on have the size of a futex (32 bits).
  struct alignas(64) Helper {
    std::atomic<uint32_t> inside{0};  // 1: may be running a chunk; 0: is not
    std::atomic<uint32_t> parked{0};
    std::atomic<bool> on_callers_core{false};  // the caller moved the helper to the caller's core
    clockid_t clock{};                         // measures the CPU time of `thread`
    std::thread thread;

    // Used by the helper only:
    std::chrono::nanoseconds worked{0};  // its CPU time at the end of its last backoff
    std::chrono::steady_clock::time_point last_backoff{};
    int backoffs = 0;  // how often in a row a backoff soon followed the one before; 0 after the first
  };

  // The chunks that a thread runs first. Loops over the same positions or channels then find their data in that
  // thread's cache.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void start();
  void distribute(int64_t chunks, int threads);
  void work(int share);
  void wait_for(Helper& helper);
  void helper_main(int index);
  void join_loop(Helper& me, int index, uint64_t round);
  void park(Helper& me, uint64_t round);
  void leave_callers_core(Helper& me);
  void back_off(Helper& me);

  const int max_helpers_;
  const pid_t process_;
  std::unique_ptr<Helper[]> helpers_;
  std::unique_ptr<Share[]> shares_;  // shares of the caller, then of the helpers
  bool is_started_ = false;          // whether start() was called
  int started_ = 0;                  // number of helpers that have a thread
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> migrations_{0};

  // Written by the caller for each loop. `round_` is odd while a loop is open; helpers that are inside may read
  // `loop_`.
  alignas(64) std::atomic<uint64_t> round_{0};
  std::atomic<int> wanted_{0};  // how many helpers this loop needs
  std::atomic<int> core_{-1};   // the core that the caller runs on
  std::atomic<bool> stop_{false};
  Loop loop_{};
  int caller_index_ = 0;
  int share_count_ = 0;  // number of shares in use

  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // written by the thread that set failed_
};

}  // namespace backplane::cpu
