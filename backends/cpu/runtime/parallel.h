// SPDX-License-Identifier: Apache-2.0
// Parallel loops on the threads of the current device (runtime/threads.h).
#pragma once

#include <cstdint>
#include <memory>

namespace backplane::cpu {

// Runs body(begin, end) over [0, count) in chunks of at least `grain` elements on the device's threads, including the
// calling thread. If 0 < count <= `grain`, calls body(0, count). Otherwise, if the calling thread has a watch
// (runtime/watch.h), checks it about every millisecond, and for that cuts chunks into parts, of which the last may have
// fewer than `grain` elements. Rethrows the first exception thrown by a chunk or by the watch.
void parallel(int64_t count, int64_t grain, const auto& body);
void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self);
void parallel(int64_t count, int64_t grain, const auto& body) {
  parallel_erased(
      count, grain, [](void* self, int64_t b, int64_t e) { (*static_cast<decltype(&body)>(self))(b, e); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// The number of threads that `parallel` can use when called here, at least 1. Plans use PlanContext::threads instead.
int thread_count();

// The calling thread's index: below thread_count(), and unique among the threads that run a parallel loop.
int thread_index();

}  // namespace backplane::cpu
