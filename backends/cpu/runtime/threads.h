// SPDX-License-Identifier: Apache-2.0
// The threads of a device: a oneTBB arena, so that many callers at once share a bounded number of threads, and a team
// for a run that is alone. And how the kernels that they work for are to be made.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstdint>
#include <optional>
#include <type_traits>

#include "runtime/team.h"

namespace backplane::cpu {

class Threads {
 public:
  Threads(int count, bool reference, uint32_t numa_nodes);
  int count() const { return count_; }
  bool reference() const { return reference_; }
  oneapi::tbb::task_arena& arena() { return arena_; }
  Team* team() { return team_ ? &*team_ : nullptr; }

 private:
  int count_;
  bool reference_;
  oneapi::tbb::task_arena arena_;
  std::optional<Team> team_;  // not where the arena is bound to a node of many: only its threads are
};

// While it lives, `parallel` on this thread uses these threads; without one it stays on the calling thread, or in the
// arena that the calling worker belongs to.
class UseThreads {
 public:
  explicit UseThreads(Threads& threads, bool inside = false);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  Threads* before_;
  bool before_inside_;
};

// Runs f() as one of these threads, perhaps not the calling one: its parallel loops start without entering the arena
// each time, and callers beyond the number of threads wait. What f throws reaches the caller.
void run_inside_erased(Threads& threads, void (*body)(void* self), void* self);

template <class F>
void run_inside(Threads& threads, F&& f) {
  run_inside_erased(
      threads, [](void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(); }, &f);
}

// Whether kernels and steps that are made now are to be those that follow the operator's definition: no fusion, no
// blocked tensors, no oneDNN where there is plain code. For comparison (BACKPLANE_CPU_REFERENCE=1, cpu.reference=1).
bool reference_only();

// How many threads `parallel` can use here, at least 1.
int thread_count();

// The calling thread's place among them, below thread_count(): within one parallel loop no two threads have the same.
int thread_index();

}  // namespace backplane::cpu
