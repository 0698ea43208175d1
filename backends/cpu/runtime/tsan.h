// SPDX-License-Identifier: Apache-2.0
// Tells the thread sanitizer what oneTBB, which is not instrumented, orders: spawn before body before join. For files
// that are themselves left out of the checks, which define BACKPLANE_TSAN; nothing in other builds.
#pragma once

#ifdef BACKPLANE_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace backplane::cpu {

// What this thread did before is visible to whoever calls `happens_after` on the same address later.
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

}  // namespace backplane::cpu
