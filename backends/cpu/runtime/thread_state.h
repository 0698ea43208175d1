// SPDX-License-Identifier: Apache-2.0
// The device, run and limits that the calling thread works for.
#pragma once

#include <utility>

namespace backplane::cpu {

class Budget;
class ActiveRun;
class Threads;
class Watch;

struct ThreadState {
  Threads* threads = nullptr;             // or none
  bool inside_arena = false;              // of `threads`
  const ActiveRun* active_run = nullptr;  // of the run that it began and is in, or none
  Budget* budget = nullptr;               // charged for its allocations, or none
  const Watch* watch = nullptr;           // may end its work, or none
};

inline ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

// While it lives, the calling thread's work is under this watch, which may be null.
class UseWatch {
 public:
  explicit UseWatch(const Watch* watch) : before_(std::exchange(thread_state().watch, watch)) {}
  ~UseWatch() { thread_state().watch = before_; }
  UseWatch(const UseWatch&) = delete;
  UseWatch& operator=(const UseWatch&) = delete;

 private:
  const Watch* before_;
};

// While it lives, the calling thread's allocations are charged to this budget, which may be null.
class UseBudget {
 public:
  explicit UseBudget(Budget* budget) : before_(std::exchange(thread_state().budget, budget)) {}
  ~UseBudget() { thread_state().budget = before_; }
  UseBudget(const UseBudget&) = delete;
  UseBudget& operator=(const UseBudget&) = delete;

 private:
  Budget* before_;
};

}  // namespace backplane::cpu
