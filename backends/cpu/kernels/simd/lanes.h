// SPDX-License-Identifier: Apache-2.0
// Vectors of floats for loops whose sums stay in registers, and what makes a function that works on them one for an
// instruction set. Which one may run is asked in kernels/onednn/onednn.h.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#ifdef __clang__  // which vectorizes at -O2 too, and has no attribute for it
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#else
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4"), optimize("O3")))
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3"), optimize("O3")))
#endif
#else
#define FOR_AVX512
#define FOR_AVX2
#endif

namespace backplane::cpu {

template <int kLanes>
struct LanesOf {
  typedef float type __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};

}  // namespace backplane::cpu
