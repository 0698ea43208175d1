// SPDX-License-Identifier: Apache-2.0
// The threads of a device: a oneTBB arena, so that many callers at once share a bounded number of threads.
#pragma once

#include <oneapi/tbb/task_arena.h>

namespace backplane::cpu {

class Threads {
 public:
  explicit Threads(int count) : count_(count), arena_(count) {}
  int count() const { return count_; }
  oneapi::tbb::task_arena& arena() { return arena_; }

 private:
  int count_;
  oneapi::tbb::task_arena arena_;
};

// While it lives, `parallel` on this thread uses these threads; without one it stays on the calling thread, or in the
// arena that the calling worker belongs to.
class UseThreads {
 public:
  explicit UseThreads(Threads& threads);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  Threads* before_;
};

// How many threads `parallel` can use here, at least 1.
int thread_count();

// The calling thread's place among them, below thread_count(): within one parallel loop no two threads have the same.
int thread_index();

}  // namespace backplane::cpu
