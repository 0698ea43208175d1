// SPDX-License-Identifier: Apache-2.0
// The threads of a device: a oneTBB arena, in which concurrent callers share a bounded number of threads, and a team
// for a run that is alone. Allocations of these threads are charged to the device's budget.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/budget.h"
#include "runtime/team.h"
#include "runtime/thread_state.h"

namespace backplane::cpu {

// The values of the option "threads_policy": which threads join a run that is alone in its process. kTeam: a team
// (docs/decisions/0009). kArena: those of the arena, as for concurrent runs. kAuto: a team, unless there are several
// NUMA nodes, because only arena threads are bound to a node.
enum class ThreadsPolicy { kAuto, kTeam, kArena };

class Threads {
 public:
  Threads(int count, ThreadsPolicy policy, uint32_t numa_nodes, int64_t max_bytes);
  int count() const { return count_; }
  oneapi::tbb::task_arena& arena() { return arena_; }
  Team* team() { return team_ ? &*team_ : nullptr; }
  // A run on a single thread holds this instead of entering the arena: an arena of one thread has room for two callers
  // at once, and the second would have a thread index for which steps have no scratch memory.
  std::mutex& only_thread() { return only_thread_; }
  Budget& budget() { return budget_; }
  const Budget& budget() const { return budget_; }

 private:
  int count_;
  Budget budget_;
  oneapi::tbb::task_arena arena_;
  std::mutex only_thread_;
  std::optional<Team> team_;  // absent for a single thread, or if the policy chooses the arena
};

// During its lifetime, `parallel` (runtime/parallel.h) on this thread uses `threads`, and allocations are charged to
// their budget. Without it, `parallel` runs on the calling thread, or in the arena of the oneTBB worker that calls it.
// `inside`: the calling thread has already entered the arena of `threads`.
class UseThreads {
 public:
  explicit UseThreads(Threads& threads, bool inside = false);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  ThreadState before_;
};

// During its lifetime, the calling thread works for this run.
class UseActiveRun {
 public:
  explicit UseActiveRun(const ActiveRun* active_run) : before_(std::exchange(thread_state().active_run, active_run)) {}
  ~UseActiveRun() { thread_state().active_run = before_; }
  UseActiveRun(const UseActiveRun&) = delete;
  UseActiveRun& operator=(const UseActiveRun&) = delete;

 private:
  const ActiveRun* before_;
};

// Runs f() as a run (active_run.h) on one of these threads, not necessarily the calling one. Loops in f then need not
// enter the arena, and callers wait if there are more of them than threads. Rethrows an exception of f to the caller.
void run_inside_erased(Threads& threads, void (*body)(void* self), void* self);

template <class F>
void run_inside(Threads& threads, F&& f) {
  run_inside_erased(
      threads, [](void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(); }, &f);
}

}  // namespace backplane::cpu
