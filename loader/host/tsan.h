// SPDX-License-Identifier: Apache-2.0
// Announces to the thread sanitizer an order that it cannot see, because the library that enforces it (oneTBB) is not
// instrumented. Does nothing in other builds.
#pragma once

#if defined(BACKPLANE_TSAN)  // defined by files that are themselves compiled without the sanitizer
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

// All that this thread did before is visible to threads that call `happens_after` on the same address later.
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
