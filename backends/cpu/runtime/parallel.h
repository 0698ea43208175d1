// SPDX-License-Identifier: Apache-2.0
// Parallel loops on the threads of the device that is in use (runtime/threads.h).
#pragma once

#include <cstdint>
#include <memory>

namespace backplane::cpu {

// Runs body(begin, end) over [0, count) in pieces of at least `grain` on the backend's threads; the caller takes part.
// If count > `grain`, the caller's watch (runtime/watch.h) is checked about every millisecond, which may cut pieces
// further. Rethrows the first exception of a piece or the watch.
void parallel(int64_t count, int64_t grain, const auto& body);
void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self);
void parallel(int64_t count, int64_t grain, const auto& body) {
  parallel_erased(
      count, grain, [](void* self, int64_t b, int64_t e) { (*static_cast<decltype(&body)>(self))(b, e); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// How many threads `parallel` can use here, at least 1. Plans use PlanContext::threads instead.
int thread_count();

// The calling thread's index, below thread_count(): unique among the threads of a parallel loop.
int thread_index();

}  // namespace backplane::cpu
