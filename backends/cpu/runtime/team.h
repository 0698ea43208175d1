// SPDX-License-Identifier: Apache-2.0
// A team of threads that stays with a run from loop to loop. Between loops its helpers spin for kSpinTime, then sleep:
// starting a loop costs no system call while a run goes on, and an idle team costs nothing.
//
// A helper can lose its core to another process in the middle of a piece, for as long as the system's time slices last:
// milliseconds. The caller would wait for it. Instead it sees that the helper does not run, moves it to its own core
// and sleeps until the piece is done. The helper then leaves the caller's core and sleeps for as long as it had worked:
// otherwise the move would have taken that time from the other process.
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

// body(self, begin, end) over [0, count), cut into `pieces` that differ by one at most.
struct Loop {
  int64_t count;
  int64_t pieces;
  void (*body)(void* self, int64_t begin, int64_t end);
  void* self;
  // The caller's budget and watch, which hold for all threads that take a piece. With a watch a piece is cut further,
  // into parts of at least `grain`, between which the watch is checked.
  Budget* budget = nullptr;
  const Watch* watch = nullptr;
  int64_t grain = 1;

  void run_piece(int64_t piece) const;
  void run_part(int64_t begin, int64_t end) const;
};

// While it lives, the budget and watch of the loop's caller hold for the calling thread.
class WorkFor {
 public:
  explicit WorkFor(const Loop& loop) : budget_(loop.budget), watch_(loop.watch) {}

 private:
  UseBudget budget_;
  UseWatch watch_;
};

class Team {
 public:
  // How long helpers spin before they sleep. Runs that follow one another find them awake.
  static constexpr std::chrono::microseconds kSpinTime{50};

  // `threads` includes the caller's. Helpers start with the first loop; there are fewer where the process may use fewer
  // cores, or where the system creates no more threads.
  explicit Team(int threads);
  // Not while a loop runs.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs the loop; the caller takes pieces too. False, with nothing done, where the team is in another loop or has no
  // helpers. `caller_index`: the caller's thread_index(); the helpers take the others. An exception of a piece is
  // rethrown to the caller when no piece runs any more; pieces that had not begun are left out. [any thread]
  bool run(const Loop& loop, int caller_index);

  // The calling helper's thread_index(), -1 where the caller is no helper. [any thread]
  static int helper_thread_index();

  // How often a caller moved a helper to its own core. [any thread]
  uint64_t migrations() const { return migrations_.load(std::memory_order_relaxed); }

 private:
  // State shared by the caller and one helper. Words that threads wait on have the size of a futex.
  struct alignas(64) Helper {
    std::atomic<uint32_t> inside{0};  // perhaps in a piece
    std::atomic<uint32_t> parked{0};
    std::atomic<bool> on_callers_core{false};  // the caller moved it there
    clockid_t clock{};                         // of its thread's time on a core
    std::thread thread;

    // The helper's own.
    std::chrono::nanoseconds worked{0};  // its time on a core when it last backed off
    std::chrono::steady_clock::time_point last_backoff{};
    int backoffs = 0;  // in a row
  };

  // Pieces that one thread takes first. Loops over the same places or channels then find in its cache what it wrote.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void start();
  void distribute(int64_t pieces, int threads);
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
  std::unique_ptr<Share[]> shares_;  // the caller's, then the helpers'
  bool is_started_ = false;          // start() was called
  int started_ = 0;                  // of the seats
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> migrations_{0};

  // Written by the caller for each loop. Odd: the loop is open, and helpers that are inside may read `loop_`.
  alignas(64) std::atomic<uint64_t> round_{0};
  std::atomic<int> wanted_{0};  // helpers for this loop, a hint
  std::atomic<int> core_{-1};   // the caller's
  std::atomic<bool> stop_{false};
  Loop loop_{};
  int caller_index_ = 0;
  int share_count_ = 0;  // in use

  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // of the thread that set failed_
};

}  // namespace backplane::cpu
