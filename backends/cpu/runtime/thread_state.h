// SPDX-License-Identifier: Apache-2.0
// The device and run that the calling thread works for, and the budget and watch that limit its work.
#pragma once

#include <utility>

namespace backplane::cpu {

class Budget;
class ActiveRun;
class Threads;
class Watch;

struct ThreadState {
  Threads* threads = nullptr;             // the threads of the device in use; null: none
  bool inside_arena = false;              // the thread is in the arena of `threads`
  const ActiveRun* active_run = nullptr;  // the run that this thread works for; null: none
  Budget* budget = nullptr;               // charged for this thread's allocations; null: none
  const Watch* watch = nullptr;           // may stop this thread's work; null: none
};

inline ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

// During its lifetime, `watch` may stop the calling thread's work. Null: nothing stops it.
class UseWatch {
 public:
  explicit UseWatch(const Watch* watch) : before_(std::exchange(thread_state().watch, watch)) {}
  ~UseWatch() { thread_state().watch = before_; }
  UseWatch(const UseWatch&) = delete;
  UseWatch& operator=(const UseWatch&) = delete;

 private:
  const Watch* before_;
};

// During its lifetime, `budget` is charged for the calling thread's allocations. Null: no budget is charged.
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
