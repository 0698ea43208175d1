// SPDX-License-Identifier: Apache-2.0
// Announces to the thread sanitizer an order that oneTBB enforces. The sanitizer cannot see it, because oneTBB is not
// instrumented. Does nothing in other builds.
#pragma once

#if defined(BACKPLANE_TSAN)  // already defined in sources that are compiled without the sanitizer
#elif defined(__SANITIZE_THREAD__)
#define BACKPLANE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BACKPLANE_TSAN 1
#endif
#endif

#ifdef BACKPLANE_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace backplane {

// Everything that this thread did before is visible to threads that later call `happens_after` with the same address.
inline void happens_before([[maybe_unused]] void* address) {
#ifdef BACKPLANE_TSAN
  __tsan_release(address);
#endif
}

inline void happens_after([[maybe_unused]] void* address) {
#ifdef BACKPLANE_TSAN
  __tsan_acquire(address);
#endif
}

}  // namespace backplane
