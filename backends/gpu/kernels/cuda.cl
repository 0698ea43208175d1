// SPDX-License-Identifier: Apache-2.0
// The prelude for CUDA C++: defines the part of OpenCL C that the kernels use, and the additional names that
// kernels/opencl.cl lists. The compiler option --device-as-default-execution-space makes functions without a qualifier
// device functions.
#define kernel extern "C" __global__
#define GLOBAL
#define LOCAL
#define restrict __restrict__
#define SHARED(type, name, count) __shared__ type name[count]

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef decltype(sizeof(0)) size_t;
static_assert(sizeof(long) == 8, "long has 64 bits");

#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fc00000))
#define as_float(bits) __uint_as_float(bits)
#define as_uint(value) __float_as_uint(value)

// ---- work items ----------------------------------------------------------------------------------------------------

#define barrier(fence) __syncthreads()
inline size_t get_local_id(int d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
inline size_t get_group_id(int d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
inline size_t get_local_size(int d) { return d == 0 ? blockDim.x : d == 1 ? blockDim.y : blockDim.z; }
inline size_t get_global_id(int d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }

// Like JOINED of kernels/types.cl, and in the same order, but work items of a warp exchange values without memory and
// barriers. All warps of a group execute the exchange; only the result of the first warp is used.
#define WARP (LANES < 32 ? LANES : 32)
#define WARP_MASK (0xffffffffu >> (32 - WARP))
#define JOINED(name, type, join)                                    \
  inline type name(type mine, type* shared) {                       \
    const int lane = (int)threadIdx.x;                              \
    if (LANES > WARP) shared[lane] = mine;                          \
    for (int half_of = LANES / 2; half_of >= WARP; half_of /= 2) {  \
      __syncthreads();                                              \
      if (lane < half_of) {                                         \
        const type a = shared[lane], b = shared[lane + half_of];    \
        shared[lane] = mine = join;                                 \
      }                                                             \
    }                                                               \
    for (int half_of = WARP / 2; half_of > 0; half_of /= 2) {       \
      const type a = mine, b = __shfl_down_sync(WARP_MASK, mine, half_of); \
      mine = join;                                                  \
    }                                                               \
    if (LANES == WARP) {                                            \
      __syncwarp(WARP_MASK);                                        \
      return __shfl_sync(WARP_MASK, mine, 0);                       \
    }                                                               \
    if (lane == 0) shared[0] = mine;                                \
    __syncthreads();                                                \
    const type result = shared[0];                                  \
    __syncthreads();                                                \
    return result;                                                  \
  }

// ---- conversions ---------------------------------------------------------------------------------------------------

template <class T>
inline T clamp(T v, T low, T high) { return v < low ? low : v > high ? high : v; }

// Conversions round toward 0; _sat also clamps, and maps NaN to 0. `limit` is the first number beyond `most`. As
// floats, `least` and `limit` are exact, which `most` may not be.
#define CONVERSION(name, type, least, most, limit)                                                              \
  template <class From>                                                                                         \
  inline type convert_##name(From v) { return (type)v; }                                                        \
  inline type convert_##name##_sat(float v) { return !(v >= (float)(least)) ? (v < 0 ? (type)(least) : (type)0) \
                                                     : v >= limit##f ? (type)(most) : (type)v; }                \
  inline type convert_##name##_sat(double v) { return !(v >= (double)(least)) ? (v < 0 ? (type)(least) : (type)0) \
                                                      : v >= limit ? (type)(most) : (type)v; }
CONVERSION(char, signed char, -128, 127, 128.0)
CONVERSION(uchar, uchar, 0, 255, 256.0)
CONVERSION(short, short, -32768, 32767, 32768.0)
CONVERSION(ushort, ushort, 0, 65535, 65536.0)
CONVERSION(int, int, -2147483647 - 1, 2147483647, 2147483648.0)
CONVERSION(uint, uint, 0, 4294967295u, 4294967296.0)
CONVERSION(long, long, -9223372036854775807L - 1, 9223372036854775807L, 9223372036854775808.0)
CONVERSION(ulong, ulong, 0, 18446744073709551615ul, 18446744073709551616.0)

// Conversions of fp16 values. Tests that compile kernels for the host define their own.
#ifndef HALF_CONVERSIONS
inline float half_to_float(ushort bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
inline ushort float_to_half(float v) {
  ushort bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}
#endif
struct half { ushort bits; };
inline float vload_half(size_t i, const half* p) { return half_to_float(p[i].bits); }
inline void vstore_half_rte(float v, size_t i, half* p) { p[i].bits = float_to_half(v); }

// ---- vectors -------------------------------------------------------------------------------------------------------

template <int N>
struct Floats {
  float lanes[N];
  Floats() = default;
  Floats(float v) { for (int i = 0; i < N; ++i) lanes[i] = v; }
};
#define FLOATS(n) Floats<n>
#define FLOATS_OF(n, p) floats_of<n>(p)
#define FLOATS_TO(n, v, p) floats_to<n>(v, p)
template <int N>
inline Floats<N> floats_of(const float* p) {
  Floats<N> v;
  for (int i = 0; i < N; ++i) v.lanes[i] = p[i];
  return v;
}
template <int N>
inline void floats_to(const Floats<N>& v, float* p) {
  for (int i = 0; i < N; ++i) p[i] = v.lanes[i];
}
template <int N>
inline Floats<N> fma(const Floats<N>& a, const Floats<N>& b, const Floats<N>& c) {
  Floats<N> v;
  for (int i = 0; i < N; ++i) v.lanes[i] = fmaf(a.lanes[i], b.lanes[i], c.lanes[i]);
  return v;
}
#define OPERATOR(op)                                                                              \
  template <int N>                                                                                \
  inline Floats<N> operator op(Floats<N> a, const Floats<N>& b) {                                 \
    for (int i = 0; i < N; ++i) a.lanes[i] = a.lanes[i] op b.lanes[i];                            \
    return a;                                                                                     \
  }                                                                                               \
  template <int N>                                                                                \
  inline Floats<N> operator op(Floats<N> a, float b) { return a op Floats<N>(b); }                \
  template <int N>                                                                                \
  inline Floats<N>& operator op##=(Floats<N>& a, const Floats<N>& b) { return a = a op b; }       \
  template <int N>                                                                                \
  inline Floats<N>& operator op##=(Floats<N>& a, float b) { return a = a op Floats<N>(b); }
OPERATOR(+)
OPERATOR(-)
OPERATOR(*)

