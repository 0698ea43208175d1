// SPDX-License-Identifier: Apache-2.0
// Compiles plain loops for each instruction set. A function marked CLONED is called as clone_of<function>(…), which
// runs the clone for the best instruction set that processor() allows.
#pragma once

#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

// Attributes of a function that is inlined into each of its clones. Functions that it calls in loops must be
// [[gnu::always_inline]]; otherwise they may remain calls, which prevents vectorization.
#define CLONED [[gnu::always_inline]] VECTORIZED inline

namespace backplane::cpu {

template <auto kWide, auto kMiddle, auto kNarrow>
struct Clones;

template <class R, class... A, R (*kWide)(A...), R (*kMiddle)(A...), R (*kNarrow)(A...)>
struct Clones<kWide, kMiddle, kNarrow> {
  FOR_AVX512 static R avx512(A... a) { return kWide(a...); }
  FOR_AVX2 static R avx2(A... a) { return kMiddle(a...); }
  VECTORIZED static R baseline(A... a) { return kNarrow(a...); }

  static R run(A... a) {
    const Processor& p = processor();
    if (p.has(Instructions::kAvx512)) return avx512(a...);
    return p.has(Instructions::kAvx2) ? avx2(a...) : baseline(a...);
  }
};

// Runs the clone for this processor. Up to three functions can be passed, for vectors of 64, 32 and 16 bytes.
template <auto kWide, auto kMiddle = kWide, auto kNarrow = kMiddle>
inline constexpr auto& clone_of = Clones<kWide, kMiddle, kNarrow>::run;

}  // namespace backplane::cpu
