// SPDX-License-Identifier: Apache-2.0
// Announces to the thread sanitizer the order that oneTBB, which is not instrumented, enforces: spawn before body
// before join. For files that are not instrumented themselves: their build defines BACKPLANE_TSAN. Does nothing
// without that macro.
#pragma once

#ifdef BACKPLANE_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace backplane::cpu {

// All that this thread did before is visible to the thread that calls `happens_after` on the same address later.
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
