// SPDX-License-Identifier: Apache-2.0
// A team of threads that stays with a run from loop to loop. Between loops its helpers spin for kSpinTime, then sleep:
// a loop that soon follows another starts without a system call, and an idle team costs nothing.
//
// A helper can lose its core to another process in the middle of a piece, for a time slice of the system: milliseconds.
// Instead of waiting that long, the caller detects that the helper is not running, moves it to the caller's core and
// sleeps until the piece is done. The helper then leaves that core and backs off: it sleeps, at most as long as it had
// worked, as the move took time from the other process.
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

// body(self, begin, end) over [0, count), cut into `pieces` whose sizes differ by at most one.
struct Loop {
  int64_t count;
  int64_t pieces;
  void (*body)(void* self, int64_t begin, int64_t end);
  void* self;
  // The caller's budget and watch, which apply to all threads that take a piece. With a watch, each piece is cut into
  // parts of at least `grain` (the last may be smaller), and the watch is checked before each part.
  Budget* budget = nullptr;
  const Watch* watch = nullptr;
  int64_t grain = 1;

  void run_piece(int64_t piece) const;
  void run_part(int64_t begin, int64_t end) const;
};

// While it lives, the budget and watch of the loop's caller apply to the calling thread.
class WorkFor {
 public:
  explicit WorkFor(const Loop& loop) : budget_(loop.budget), watch_(loop.watch) {}

 private:
  UseBudget budget_;
  UseWatch watch_;
};

class Team {
 public:
  // How long helpers spin before they sleep. Runs in quick succession find them awake.
  static constexpr std::chrono::microseconds kSpinTime{50};

  // `threads` includes the caller's. Helpers start with the first loop; there are fewer if the process may use fewer
  // cores, or if the system creates no more threads.
  explicit Team(int threads);
  // Must not be called while a loop runs.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs the loop; the caller takes pieces too. Returns false and runs nothing if the team is in another loop or has no
  // helpers. `caller_index`: the caller's thread_index(); the helpers use the other indices. The first exception of a
  // piece is rethrown here once no piece runs any more; pieces that had not begun are skipped. [any thread]
  bool run(const Loop& loop, int caller_index);

  // The calling helper's thread_index(), or -1 if the calling thread is not a helper. [any thread]
  static int helper_thread_index();

  // How often a caller moved a helper to its own core. [any thread]
  uint64_t migrations() const { return migrations_.load(std::memory_order_relaxed); }

 private:
  // State shared by the caller and one helper. Words that threads wait on have the size of a futex.
  struct alignas(64) Helper {
    std::atomic<uint32_t> inside{0};  // 1: may be running a piece
    std::atomic<uint32_t> parked{0};
    std::atomic<bool> on_callers_core{false};  // the caller moved it there
    clockid_t clock{};                         // counts its thread's CPU time
    std::thread thread;

    // Used by the helper only.
    std::chrono::nanoseconds worked{0};  // its CPU time when it last backed off
    std::chrono::steady_clock::time_point last_backoff{};
    int backoffs = 0;  // in a row
  };

  // The pieces that one thread takes first, so that loops over the same positions or channels hit that thread's cache.
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
  int started_ = 0;                  // helpers that have a thread
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> migrations_{0};

  // Written by the caller for each loop. While `round_` is odd, the loop is open; helpers inside may read `loop_`.
  alignas(64) std::atomic<uint64_t> round_{0};
  std::atomic<int> wanted_{0};  // helpers for this loop, a hint
  std::atomic<int> core_{-1};   // the caller's
  std::atomic<bool> stop_{false};
  Loop loop_{};
  int caller_index_ = 0;
  int share_count_ = 0;  // shares in use

  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // of the thread that set failed_
};

}  // namespace backplane::cpu
