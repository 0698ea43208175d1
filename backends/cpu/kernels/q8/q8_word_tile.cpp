// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_word_tile.h"

#include <utility>

#include "kernels/simd/lanes.h"

namespace backplane::cpu {

namespace {

typedef int32_t Lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Pair __attribute__((aligned(2), may_alias));

// Adds the products of pairs of 16-bit integers to the sums. Vector types have no operator for it; analyzers and
// sanitizers compile for a baseline that lacks the instruction.
[[gnu::always_inline]] inline void add_products(Lanes& sums, const Lanes& w, const Lanes& x) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang_analyzer__)
  Lanes products;
  asm("vpmaddwd %2, %1, %0" : "=x"(products) : "x"(w), "x"(x));
  sums += products;
#else
  sums += ((w << 16) >> 16) * ((x << 16) >> 16) + (w >> 16) * (x >> 16);
#endif
}

template <int kPositions>
FOR_AVX2 void multiply(const WordTile& t) {
  Lanes sums[2 * kPositions];
#pragma GCC unroll 16
  for (int i = 0; i < 2 * kPositions; ++i)
    sums[i] = t.begins ? Lanes{} : *reinterpret_cast<const Lanes*>(t.sums + i * 8);
  const int16_t* w = t.weights;
  for (int64_t line = 0; line < t.line_count; ++line) {
    const int16_t* x = t.x + t.lines[line];
    for (int64_t i = 0; i < t.pairs; ++i, x += 2, w += 2 * kWordChannels) {
      const Lanes low = *reinterpret_cast<const Lanes*>(w), high = *reinterpret_cast<const Lanes*>(w + kWordChannels);
#pragma GCC unroll 8
      for (int p = 0; p < kPositions; ++p) {
        const Lanes both = Lanes{} + *reinterpret_cast<const Pair*>(x + p * t.x_position);
        add_products(sums[2 * p], low, both);
        add_products(sums[2 * p + 1], high, both);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < 2 * kPositions; ++i) *reinterpret_cast<Lanes*>(t.sums + i * 8) = sums[i];
}

template <int... kLess>
WordKernel kernel_of(int64_t positions, std::integer_sequence<int, kLess...>) {
  static constexpr WordKernel kKernels[] = {multiply<kLess + 1>...};
  return kKernels[positions - 1];
}

}  // namespace

WordKernel word_kernel(int64_t positions) {
  return kernel_of(positions, std::make_integer_sequence<int, kMaxWordPositions>{});
}

}  // namespace backplane::cpu
