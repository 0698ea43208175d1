// SPDX-License-Identifier: Apache-2.0
// A team of threads that stays with a run from loop to loop. Between loops its helpers watch for the next one for
// kStay, then sleep: starting a loop costs no system call while a run goes on, and an idle team costs nothing.
//
// A helper can lose its core to another process in the middle of a piece, for as long as the system's turns last:
// milliseconds. The caller would wait for it. Instead it sees that the helper does not run, moves it to its own core
// and sleeps until the piece is done; the helper then steps aside, to a core that is not the caller's, and rests for as
// long as it had worked, or the move would cost the other process its turn.
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
  // What the caller works under, and with it all threads that take a piece. With a watch a piece is cut further, into
  // parts of at least `grain`, between which the watch is asked.
  Budget* budget = nullptr;
  const Watch* watch = nullptr;
  int64_t grain = 1;

  void run_piece(int64_t piece) const;
  void run_part(int64_t begin, int64_t end) const;
};

// While it lives, the calling thread works under what the loop's caller does.
class WorkFor {
 public:
  explicit WorkFor(const Loop& loop) : budget_(loop.budget), watch_(loop.watch) {}

 private:
  UseBudget budget_;
  UseWatch watch_;
};

class Team {
 public:
  // How long helpers watch for the next loop. Runs that follow one another find them awake.
  static constexpr std::chrono::microseconds kStay{50};

  // `threads`: with the caller's. Helpers start with the first loop; there are fewer where the process may use fewer
  // cores, or where the system makes no more threads.
  explicit Team(int threads);
  // Not while a loop runs.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs the loop, of which the caller takes pieces too; false, and nothing was done, where the team is in another loop
  // or has no helpers. `place`: the caller's among the threads (thread_index()); the helpers take the others. What a
  // piece throws reaches the caller when no piece runs any more; pieces that had not begun are left out. [any thread]
  bool run(const Loop& loop, int place);

  // The calling helper's place, -1 where it is none. [any thread]
  static int place();

  // How often a caller moved a helper to its own core. [any thread]
  uint64_t lent() const { return lent_.load(std::memory_order_relaxed); }

 private:
  // State shared by the caller and one helper. Words that threads wait on have the size of a futex.
  struct alignas(64) Helper {
    std::atomic<uint32_t> inside{0};  // perhaps in a piece
    std::atomic<uint32_t> parked{0};
    std::atomic<bool> guest{false};  // on the caller's core
    clockid_t clock{};               // of its thread's time on a core
    std::thread thread;

    // The helper's own.
    std::chrono::nanoseconds worked{0};  // its time on a core when it last rested
    std::chrono::steady_clock::time_point rested{};
    int rests = 0;  // that followed one another
  };

  // Pieces that one thread takes first. Loops over the same places or channels then find in its cache what it wrote.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void start();
  void deal(int64_t pieces, int threads);
  void work(int share);
  void wait_for(Helper& helper);
  void help(int seat);
  void take_part(Helper& me, int seat, uint64_t round);
  void park(Helper& me, uint64_t round);
  void step_aside(Helper& me);
  void rest(Helper& me);

  const int seats_;
  const pid_t process_;
  std::unique_ptr<Helper[]> helpers_;
  std::unique_ptr<Share[]> shares_;  // the caller's, then the helpers'
  bool begun_ = false;               // start() was called
  int started_ = 0;                  // of the seats
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> lent_{0};

  // Written by the caller for each loop. Odd: the loop is open, and helpers that are inside may read `loop_`.
  alignas(64) std::atomic<uint64_t> round_{0};
  std::atomic<int> wanted_{0};  // helpers for this loop, a hint
  std::atomic<int> core_{-1};   // the caller's
  std::atomic<bool> stop_{false};
  Loop loop_{};
  int place_ = 0;
  int dealt_ = 0;  // shares

  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // of the thread that set failed_
};

}  // namespace backplane::cpu
