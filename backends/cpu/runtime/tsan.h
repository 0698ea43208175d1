// SPDX-License-Identifier: Apache-2.0
// Declares to the thread sanitizer the order that oneTBB enforces (spawn before body before join), because oneTBB is
// not instrumented. The files that use this are compiled without instrumentation too, with BACKPLANE_TSAN defined.
// Without that macro, the functions do nothing.
#pragma once

#ifdef BACKPLANE_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace backplane::cpu {

// Everything that this thread did so far is visible to a thread that later calls `happens_after` with the same address.
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
