// SPDX-License-Identifier: Apache-2.0
#include "kernels/integer/integer_tile.h"

#include <iterator>
#include <utility>

#include "runtime/processor.h"

// Vector types have no operator for these multiply-add instructions, so they are inline assembly. Analyzers reject the
// assembly's vector registers, because only its callers declare the instruction set.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang_analyzer__)
#define WIDE_TILES
#endif

namespace backplane::cpu {

namespace {

template <class M, int kBlocks, int kRows>
[[gnu::always_inline]] inline void multiply_tile(const IntegerTile& t);

template <int kLanes_, int kMaxRows_, bool kBytes_>
struct Machine {
  static constexpr int kLanes = kLanes_, kMaxRows = kMaxRows_;
  static constexpr bool kBytes = kBytes_;
  typedef uint32_t Lanes __attribute__((vector_size(kLanes_ * 4), aligned(4), may_alias));
};

#ifdef WIDE_TILES
struct Vnni : Machine<16, 14, true> {
  [[gnu::always_inline]] static inline void add(Lanes& sum, const Lanes& b, const uint32_t& a) {
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(a));
  }
  template <int kBlocks, int kRows>
  [[gnu::target("arch=x86-64-v4")]] static void run(const IntegerTile& t) {
    multiply_tile<Vnni, kBlocks, kRows>(t);
  }
};

struct AvxVnni : Machine<8, 6, true> {
  [[gnu::always_inline]] static inline void add(Lanes& sum, const Lanes& b, const uint32_t& a) {
    const Lanes row = Lanes{} + a;
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(b), "x"(row));
  }
  template <int kBlocks, int kRows>
  [[gnu::target("arch=x86-64-v3")]] static void run(const IntegerTile& t) {
    multiply_tile<AvxVnni, kBlocks, kRows>(t);
  }
};

struct Avx2 : Machine<8, 6, false> {
  [[gnu::always_inline]] static inline void add(Lanes& sum, const Lanes& b, const uint32_t& a) {
    const Lanes row = Lanes{} + a;
    Lanes products;
    asm("vpmaddwd %2, %1, %0" : "=x"(products) : "x"(b), "x"(row));
    sum += products;
  }
  template <int kBlocks, int kRows>
  [[gnu::target("arch=x86-64-v3")]] static void run(const IntegerTile& t) {
    multiply_tile<Avx2, kBlocks, kRows>(t);
  }
};
#endif

struct Baseline : Machine<4, 6, false> {
  [[gnu::always_inline]] static inline void add(Lanes& sum, const Lanes& b, const uint32_t& a) {
#ifdef __x86_64__
    Lanes products = Lanes{} + a;
    asm("pmaddwd %1, %0" : "+x"(products) : "x"(b));
    sum += products;
#else
    typedef int32_t Signed __attribute__((vector_size(16)));
    const auto columns = reinterpret_cast<const Signed&>(b);
    const Signed low = (columns << 16) >> 16, high = columns >> 16;
    const Signed products = low * static_cast<int16_t>(a) + high * static_cast<int16_t>(a >> 16);
    sum += reinterpret_cast<const Lanes&>(products);
#endif
  }
  template <int kBlocks, int kRows>
  static void run(const IntegerTile& t) {
    multiply_tile<Baseline, kBlocks, kRows>(t);
  }
};

template <class M, int kBlocks, int kRows>
[[gnu::always_inline]] inline void multiply_tile(const IntegerTile& t) {
  using Lanes = typename M::Lanes;
  Lanes sums[kBlocks * kRows];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const Lanes zero = *reinterpret_cast<const Lanes*>(t.column_zero + b * M::kLanes);
    const Lanes sum = *reinterpret_cast<const Lanes*>(t.column_sum + b * M::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[b * kRows + r] = zero * t.row_rest[r] - sum * t.row_zero[r];
  }
  const uint32_t *a = t.a, *b = t.b;
  for (int64_t g = 0; g < t.groups; ++g, a += kRows, b += M::kLanes) {
    Lanes columns[kBlocks];
#pragma GCC unroll 4
    for (int i = 0; i < kBlocks; ++i) columns[i] = *reinterpret_cast<const Lanes*>(b + i * t.b_block);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < kBlocks; ++i) M::add(sums[i * kRows + r], columns[i], a[r]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < kBlocks * kRows; ++i)
    *reinterpret_cast<Lanes*>(t.y + i % kRows * t.y_row + i / kRows * M::kLanes) = sums[i];
}

template <class M, int... kLess>
IntegerTileKernel kernel_of(int64_t blocks, int64_t rows, std::integer_sequence<int, kLess...>) {
  static constexpr IntegerTileKernel kOne[] = {M::template run<1, kLess + 1>...};
  static constexpr IntegerTileKernel kTwo[] = {M::template run<2, kLess + 1>...};
  static constexpr IntegerTileKernel kFour[] = {M::template run<4, 1>, M::template run<4, 2>};
  static_assert(kRowsOfWideTiles == std::size(kFour));
  return (blocks == 1 ? kOne : blocks == 2 ? kTwo : kFour)[rows - 1];
}

template <class M>
constexpr IntegerTiles kTiles{M::kLanes, M::kMaxRows, M::kBytes, [](int64_t blocks, int64_t rows) {
                                return kernel_of<M>(blocks, rows, std::make_integer_sequence<int, M::kMaxRows>{});
                              }};

}  // namespace

const IntegerTiles& integer_tiles() {
#ifdef WIDE_TILES
  if (processor().vnni) return kTiles<Vnni>;
  if (processor().instructions == Instructions::kAvx2Vnni) return kTiles<AvxVnni>;
  if (processor().has(Instructions::kAvx2)) return kTiles<Avx2>;
#endif
  return kTiles<Baseline>;
}

}  // namespace backplane::cpu
