// SPDX-License-Identifier: Apache-2.0
// Parallel loops on the threads of the device that is in use (runtime/threads.h).
#pragma once

#include <cstdint>
#include <memory>

namespace backplane::cpu {

// Runs body(begin, end) over [0, count) in pieces of at least `grain` on the backend's threads; the caller takes part.
// Rethrows exceptions of pieces, and those of the caller's watch (runtime/watch.h), which is checked about every
// millisecond.
void parallel(int64_t count, int64_t grain, const auto& body);
void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self);
void parallel(int64_t count, int64_t grain, const auto& body) {
  parallel_erased(
      count, grain, [](void* self, int64_t b, int64_t e) { (*static_cast<decltype(&body)>(self))(b, e); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// How many threads `parallel` can use here, at least 1. Plans are made for PlanContext::threads.
int thread_count();

// The calling thread's index, below thread_count(): different for all threads in a parallel loop.
int thread_index();

}  // namespace backplane::cpu
