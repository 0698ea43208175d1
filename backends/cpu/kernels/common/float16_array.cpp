// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/float16_array.h"

#include <cstring>

#include "kernels/common/float16.h"
#include "kernels/simd/clones.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace backplane::cpu {
namespace {

// The bits of a 16-bit float at any address, aligned or not.
typedef uint16_t Bits __attribute__((aligned(1), may_alias));
[[gnu::always_inline]] inline uint32_t load(const std::byte* from, int64_t i) {
  return reinterpret_cast<const Bits*>(from)[i];
}
[[gnu::always_inline]] inline void store(std::byte* to, int64_t i, uint32_t bits) {
  reinterpret_cast<Bits*>(to)[i] = static_cast<uint16_t>(bits);
}

// The conversions of kernels/common/float16.h without branches, so that compilers vectorize the loops.
CLONED void widen_float16(const std::byte* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t h = load(from, i);
    const uint32_t shifted = (h & 0x7fffu) << 13;  // the exponent is too small by 112, for subnormal numbers too
    const uint32_t finite = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, shifted) * 0x1p112f);
    const uint32_t special = shifted >= 0x0f800000u ? 0x7f800000u : 0u;
    to[i] = __builtin_bit_cast(float, (h & 0x8000u) << 16 | special | finite);
  }
}

CLONED void narrow_float16(const float* from, std::byte* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, from[i]);
    const auto x = static_cast<int32_t>(bits & 0x7fffffffu);
    const int32_t normal = (x - 0x38000000 + 0xfff + (x >> 13 & 1)) >> 13;
    const int32_t tiny = __builtin_bit_cast(int32_t, __builtin_bit_cast(float, x) + 0.5f) - 0x3f000000;
    const int32_t nan = 0x7e00 | (x >> 13 & 0x3ff);
    int32_t half = x < 0x38800000 ? tiny : normal;
    half = x >= 0x47800000 ? 0x7c00 : half;
    half = x > 0x7f800000 ? nan : half;
    store(to, i, (bits >> 16 & 0x8000u) | static_cast<uint32_t>(half));
  }
}

CLONED void widen_bfloat16(const std::byte* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = __builtin_bit_cast(float, load(from, i) << 16);
}

CLONED void narrow_bfloat16(const float* from, std::byte* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t x = __builtin_bit_cast(uint32_t, from[i]);
    const uint32_t rounded = (x + 0x7fffu + (x >> 16 & 1u)) >> 16;
    const bool is_nan = static_cast<int32_t>(x & 0x7fffffffu) > 0x7f800000;
    store(to, i, is_nan ? x >> 16 | 0x40u : rounded);
  }
}

#if defined(__x86_64__)
// Processors with AVX2 have instructions that convert FLOAT16. The functions below convert only whole vectors and
// return the number of converted elements.
bool has_f16c() {
  return processor().has(Instructions::kAvx2);
}

__attribute__((target("avx,f16c"))) int64_t widen_f16c(const std::byte* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i))));
  return i;
}

__attribute__((target("avx,f16c"))) int64_t narrow_f16c(const float* from, std::byte* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
#else
bool has_f16c() {
  return false;
}
int64_t widen_f16c(const std::byte*, float*, int64_t) {
  return 0;
}
int64_t narrow_f16c(const float*, std::byte*, int64_t) {
  return 0;
}
#endif

}  // namespace

void widen(bp_dtype_t from, const void* bits, float* floats, int64_t n) {
  const auto* bytes = static_cast<const std::byte*>(bits);
  if (from == BP_DTYPE_BFLOAT16) return clone_of<widen_bfloat16>(bytes, floats, n);
  const int64_t done = has_f16c() ? widen_f16c(bytes, floats, n) : 0;
  clone_of<widen_float16>(bytes + 2 * done, floats + done, n - done);
}

void narrow(bp_dtype_t to, const float* floats, void* bits, int64_t n) {
  auto* bytes = static_cast<std::byte*>(bits);
  if (to == BP_DTYPE_BFLOAT16) return clone_of<narrow_bfloat16>(floats, bytes, n);
  const int64_t done = has_f16c() ? narrow_f16c(floats, bytes, n) : 0;
  clone_of<narrow_float16>(floats + done, bytes + 2 * done, n - done);
}

}  // namespace backplane::cpu
