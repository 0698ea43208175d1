// SPDX-License-Identifier: Apache-2.0
// The device and run that the calling thread works for, and the limits of its work.
#pragma once

#include <utility>

namespace backplane::cpu {

class Budget;
class ActiveRun;
class Threads;
class Watch;

struct ThreadState {
  Threads* threads = nullptr;             // null: none
  bool inside_arena = false;              // whether the thread is in the arena of `threads`
  const ActiveRun* active_run = nullptr;  // the run that the thread began and is in; null: none
  Budget* budget = nullptr;               // charged for the thread's allocations; null: none
  const Watch* watch = nullptr;           // may stop the thread's work; null: none
};

inline ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

// While it lives, `watch`, which may be null, may stop the calling thread's work.
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
