// SPDX-License-Identifier: Apache-2.0
// Vectors of 8-bit quantized values and of the wider types that they are converted to, for functions marked FOR_AVX512.
// Most functions wrap one instruction for which vector types have no operator. Unpacking and packing work within
// 16-byte lanes, so packing undoes the reordering of unpacking.
#pragma once

#include <cstdint>

#include "kernels/simd/lanes.h"

// Clang requires each function with such instructions to declare the instruction set. GCC compiles such a function for
// the instruction set of the one into which it is inlined.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define Q8_LANES
#endif

#ifdef Q8_LANES
namespace backplane::cpu::q8_lanes {

constexpr uint8_t kSign = 0x80;  // flipping this bit adds 128 to signed values, which makes them unsigned

#define INSTRUCTION(name)                                         \
  template <class V>                                              \
  [[gnu::always_inline]] inline V name(const V& a, const V& b) {  \
    V result;                                                     \
    asm("v" #name " %2, %1, %0" : "=v"(result) : "v"(a), "v"(b)); \
    return result;                                                \
  }
INSTRUCTION(punpcklbw)  // interleaves the lower 8 bytes of each 16-byte lane of a and b, byte by byte
INSTRUCTION(punpckhbw)  // the same for the upper 8 bytes
INSTRUCTION(punpcklwd)  // the same for the lower 8 bytes, in units of 16 bits
INSTRUCTION(punpckhwd)
INSTRUCTION(packssdw)  // converts 32-bit to 16-bit integers, saturated
INSTRUCTION(packuswb)  // converts 16-bit integers to unsigned bytes, saturated
INSTRUCTION(paddsw)    // adds 16-bit integers, saturated
INSTRUCTION(minps)
INSTRUCTION(maxps)
#undef INSTRUCTION

template <int kWidth>
struct Vectors {
  typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
  typedef int16_t Int16s __attribute__((vector_size(kWidth)));
  typedef int32_t Int32s __attribute__((vector_size(kWidth)));
  typedef float Floats __attribute__((vector_size(kWidth)));
};

// A vector type for unaligned memory.
template <class V>
struct Unaligned {
  typedef V type __attribute__((aligned(1), may_alias));
};
template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  return *static_cast<const typename Unaligned<V>::type*>(from);
}
template <class V>
[[gnu::always_inline]] inline void store(void* to, const V& value) {
  *static_cast<typename Unaligned<V>::type*>(to) = value;
}

template <class V>
[[gnu::always_inline]] inline V all_bytes(int32_t value) {
  V result;
  asm("vpbroadcastb %1, %0" : "=v"(result) : "r"(value));
  return result;
}
template <class V>
[[gnu::always_inline]] inline V all_int16s(int32_t value) {
  V result;
  asm("vpbroadcastw %1, %0" : "=v"(result) : "r"(value));
  return result;
}

// The bytes of a vector, as 32-bit elements in four vectors: `a` has the first four of each 16 bytes, `b` the next
// four, and so on. Not an array, because GCC would keep it in memory throughout a loop.
template <class V>
struct Four {
  V a, b, c, d;
};

// Adds to each 32-bit sum four products of unsigned quantized values and signed weights. Requires VNNI.
template <class Int32s, class Quads>
[[gnu::always_inline]] inline void add_products(Int32s& sums, const Quads& values, const Quads& weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(values), "v"(weights));
}

// c + a · b and c - a · b, rounded once.
template <class V>
[[gnu::always_inline]] inline V plus_product(const V& c, const V& a, const V& b) {
  V result = c;
  asm("vfmadd231ps %2, %1, %0" : "+v"(result) : "v"(a), "v"(b));
  return result;
}
template <class V>
[[gnu::always_inline]] inline V minus_product(const V& c, const V& a, const V& b) {
  V result = c;
  asm("vfnmadd231ps %2, %1, %0" : "+v"(result) : "v"(a), "v"(b));
  return result;
}

// Returns x / divisor, rounded exactly as a division is, in a third of the time, provided that no intermediate result
// overflows or underflows. `inverse` is 1 / divisor, rounded. The first correction brings the quotient within 1 ulp; by
// Markstein's theorem, the second then yields the exact rounding.
template <class V>
[[gnu::always_inline]] inline V quotient(const V& x, const V& divisor, const V& inverse) {
  const V first = x * inverse;
  const V second = plus_product(first, minus_product(x, first, divisor), inverse);
  return plus_product(second, minus_product(x, second, divisor), inverse);
}

// Rounds to whole numbers, ties to even.
template <class Floats>
[[gnu::always_inline]] inline Floats nearest_of(const Floats& value) {
  Floats result;
  asm("vrndscaleps $0, %1, %0" : "=v"(result) : "v"(value));
  return result;
}
template <class Int32s, class Floats>
[[gnu::always_inline]] inline Int32s whole(const Floats& value) {
  Int32s words;
  asm("vcvtps2dq %1, %0" : "=v"(words) : "v"(value));
  return words;
}

// Converts unsigned bytes to floats.
template <int kWidth>
[[gnu::always_inline]] inline Four<typename Vectors<kWidth>::Floats> floats_of(
    const typename Vectors<kWidth>::Bytes& bytes) {
  using Bytes = typename Vectors<kWidth>::Bytes;
  using Int32s = typename Vectors<kWidth>::Int32s;
  using Floats = typename Vectors<kWidth>::Floats;
  const Bytes none{}, low = punpcklbw(bytes, none), high = punpckhbw(bytes, none);
  return {__builtin_convertvector(reinterpret_cast<Int32s>(punpcklwd(low, none)), Floats),
          __builtin_convertvector(reinterpret_cast<Int32s>(punpckhwd(low, none)), Floats),
          __builtin_convertvector(reinterpret_cast<Int32s>(punpcklwd(high, none)), Floats),
          __builtin_convertvector(reinterpret_cast<Int32s>(punpckhwd(high, none)), Floats)};
}

// Converts 32-bit integers to quantized values.
template <int kWidth>
struct Requantization {
  using Bytes = typename Vectors<kWidth>::Bytes;
  using Int16s = typename Vectors<kWidth>::Int16s;
  using Int32s = typename Vectors<kWidth>::Int32s;
  Bytes low, high, moved;
  Int16s zero;

  // Creates a conversion that adds `zero`, then clamps to [low, high].
  [[gnu::always_inline]] static inline Requantization of(int32_t zero, int32_t low, int32_t high, bool is_signed) {
    const int32_t moved = is_signed ? 128 : 0;  // signed bytes are handled as unsigned until the end
    return {all_bytes<Bytes>(low + moved), all_bytes<Bytes>(high + moved), all_bytes<Bytes>(moved),
            all_int16s<Int16s>(zero + moved)};
  }
  [[gnu::always_inline]] inline Int16s to_int16s(const Int32s& first, const Int32s& second) const {
    return paddsw(reinterpret_cast<Int16s>(packssdw(first, second)), zero);
  }
  [[gnu::always_inline]] inline Bytes to_bytes(const Int16s& first, const Int16s& second) const {
    auto bytes = reinterpret_cast<Bytes>(packuswb(first, second));
    bytes = bytes > low ? bytes : low;
    bytes = bytes < high ? bytes : high;
    return bytes ^ moved;
  }
};

}  // namespace backplane::cpu::q8_lanes
#endif
