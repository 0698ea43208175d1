// SPDX-License-Identifier: Apache-2.0
// The threads of a device: a oneTBB arena, so that many callers at once share a bounded number of threads, and a team
// for a run that is alone. Their allocations are charged to the device's budget.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/budget.h"
#include "runtime/team.h"
#include "runtime/thread_state.h"

namespace backplane::cpu {

class Threads {
 public:
  Threads(int count, uint32_t numa_nodes, int64_t max_bytes);
  int count() const { return count_; }
  oneapi::tbb::task_arena& arena() { return arena_; }
  Team* team() { return team_ ? &*team_ : nullptr; }
  Budget& budget() { return budget_; }
  const Budget& budget() const { return budget_; }

 private:
  int count_;
  Budget budget_;
  oneapi::tbb::task_arena arena_;
  std::optional<Team>
      team_;  // absent for a single thread, and with several NUMA nodes: only arena threads are bound to one
};

// While it lives, `parallel` on this thread uses these threads, and allocations count against their budget. Without
// one, `parallel` stays on the calling thread, or in the arena that the calling worker belongs to.
class UseThreads {
 public:
  explicit UseThreads(Threads& threads, bool inside = false);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  ThreadState before_;
};

// While it lives, the calling thread works for this run.
class UseActiveRun {
 public:
  explicit UseActiveRun(const ActiveRun* active_run) : before_(std::exchange(thread_state().active_run, active_run)) {}
  ~UseActiveRun() { thread_state().active_run = before_; }
  UseActiveRun(const UseActiveRun&) = delete;
  UseActiveRun& operator=(const UseActiveRun&) = delete;

 private:
  const ActiveRun* before_;
};

// Runs f() on one of these threads, perhaps not the calling one: f's parallel loops start without entering the arena
// each time, and callers beyond the number of threads wait. Exceptions of f are rethrown to the caller.
void run_inside_erased(Threads& threads, void (*body)(void* self), void* self);

template <class F>
void run_inside(Threads& threads, F&& f) {
  run_inside_erased(
      threads, [](void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(); }, &f);
}

}  // namespace backplane::cpu
