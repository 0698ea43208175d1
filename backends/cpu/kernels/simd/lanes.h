// SPDX-License-Identifier: Apache-2.0
// Vectors of floats for loops whose sums stay in registers, and attributes that compile a function for an instruction
// set. processor() reports which set may be used.
#pragma once

#include <cstdint>

#ifdef __clang__  // Clang vectorizes at -O2 already, and has no attribute for it
#define VECTORIZED
#else
#define VECTORIZED __attribute__((optimize("O3", "no-math-errno")))
#endif

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_AVX512 VECTORIZED __attribute__((target("arch=x86-64-v4")))
#define FOR_AVX2 VECTORIZED __attribute__((target("arch=x86-64-v3")))
#else
#define FOR_AVX512 VECTORIZED
#define FOR_AVX2 VECTORIZED
#endif

namespace backplane::cpu {

template <int kLanes>
struct LanesOf {
  typedef float type __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};

// By default, FloatLanes has 16 floats, in vectors of kBytes bytes. kBytes must be the vector size of the instruction
// set that a loop is compiled for, because compilers keep longer vectors in memory. The order of sums does not depend
// on kBytes.
inline constexpr int64_t kFloatLanes = 16;

template <int kBytes, int kVectors = 64 / kBytes>
struct FloatLanes {
  using Half = FloatLanes<kBytes, kVectors / 2>;
  static constexpr int64_t kCount = 2 * Half::kCount;
  Half low, high;

  [[gnu::always_inline]] static inline FloatLanes all(float value) { return {Half::all(value), Half::all(value)}; }
  [[gnu::always_inline]] static inline FloatLanes load(const float* x) {
    return {Half::load(x), Half::load(x + Half::kCount)};
  }
  [[gnu::always_inline]] inline void store(float* y) const {
    low.store(y);
    high.store(y + Half::kCount);
  }
  [[gnu::always_inline]] inline FloatLanes operator+(const FloatLanes& o) const { return {low + o.low, high + o.high}; }
  [[gnu::always_inline]] inline FloatLanes operator-(const FloatLanes& o) const { return {low - o.low, high - o.high}; }
  [[gnu::always_inline]] inline FloatLanes operator*(const FloatLanes& o) const { return {low * o.low, high * o.high}; }
  [[gnu::always_inline]] inline FloatLanes or_larger(const FloatLanes& o) const {
    return {low.or_larger(o.low), high.or_larger(o.high)};
  }
  [[gnu::always_inline]] inline float sum() const { return (low + high).sum(); }
  [[gnu::always_inline]] inline float largest() const { return low.or_larger(high).largest(); }
};

template <int kBytes>
struct FloatLanes<kBytes, 1> {
  static constexpr int64_t kCount = kBytes / 4;
  using Unaligned = typename LanesOf<kBytes / 4>::type;
  typedef float Vector __attribute__((vector_size(kBytes)));
  Vector v;

  [[gnu::always_inline]] static inline FloatLanes all(float value) { return {Vector{} + value}; }
  [[gnu::always_inline]] static inline FloatLanes load(const float* x) {
    return {*reinterpret_cast<const Unaligned*>(x)};
  }
  [[gnu::always_inline]] inline void store(float* y) const { *reinterpret_cast<Unaligned*>(y) = v; }
  [[gnu::always_inline]] inline FloatLanes operator+(const FloatLanes& o) const { return {v + o.v}; }
  [[gnu::always_inline]] inline FloatLanes operator-(const FloatLanes& o) const { return {v - o.v}; }
  [[gnu::always_inline]] inline FloatLanes operator*(const FloatLanes& o) const { return {v * o.v}; }
  // Returns the larger value in each lane; if either is NaN, the value of `o`.
  [[gnu::always_inline]] inline FloatLanes or_larger(const FloatLanes& o) const { return {v > o.v ? v : o.v}; }
  [[gnu::always_inline]] inline float sum() const {
    float lanes[kCount];
    store(lanes);
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
  }
  [[gnu::always_inline]] inline float largest() const {
    float lanes[kCount];
    store(lanes);
    float top = lanes[0];
    for (int64_t l = 1; l < kCount; ++l) top = lanes[l] > top ? lanes[l] : top;
    return top;
  }
};

}  // namespace backplane::cpu
