// SPDX-License-Identifier: Apache-2.0
// Precedes every kernel, after the prelude (opencl.cl or cuda.cl). Defines the storage type (S_) and the arithmetic
// type (C_) of each data type, and functions that load and store elements.
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define S(type) CAT(S_, type)
#define C(type) CAT(C_, type)
#define LOAD(type, p, i) CAT(load_, type)(p, i)
#define STORE(type, p, i, v) CAT(store_, type)(p, i, v)

// Types whose arithmetic type is their storage type.
#define PLAIN(type, c)                                                                      \
  inline c CAT(load_, type)(GLOBAL const c* p, int i) { return p[i]; }                      \
  inline void CAT(store_, type)(GLOBAL c* p, int i, c v) { p[i] = v; }

#define S_f32 float
#define C_f32 float
PLAIN(f32, float)
#ifdef HAS_F64
#define S_f64 double
#define C_f64 double
PLAIN(f64, double)
#endif
#define S_i8 char
#define C_i8 char
PLAIN(i8, char)
#define S_i16 short
#define C_i16 short
PLAIN(i16, short)
#define S_i32 int
#define C_i32 int
PLAIN(i32, int)
#define S_i64 long
#define C_i64 long
PLAIN(i64, long)
#define S_u8 uchar
#define C_u8 uchar
PLAIN(u8, uchar)
#define S_u16 ushort
#define C_u16 ushort
PLAIN(u16, ushort)
#define S_u32 uint
#define C_u32 uint
PLAIN(u32, uint)
#define S_u64 ulong
#define C_u64 ulong
PLAIN(u64, ulong)

// A byte that is 0 or 1.
#define S_b8 uchar
#define C_b8 uchar
PLAIN(b8, uchar)

// Arithmetic on 16-bit floats is in fp32, on every device.
#define S_f16 half
#define C_f16 float
inline float load_f16(GLOBAL const half* p, int i) { return vload_half(i, p); }
inline void store_f16(GLOBAL half* p, int i, float v) { vstore_half_rte(v, i, p); }
inline float rounded_f16(float v) {
  ushort bits;
  vstore_half_rte(v, 0, (half*)&bits);
  return vload_half(0, (const half*)&bits);
}

#define S_bf16 ushort
#define C_bf16 float
inline float load_bf16(GLOBAL const ushort* p, int i) { return as_float((uint)p[i] << 16); }
// Rounds to the nearest, ties to even; NaN stays NaN.
inline ushort bits_of_bf16(float v) {
  const uint bits = as_uint(v);
  return isnan(v) ? (ushort)((bits >> 16) | 0x40) : (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline void store_bf16(GLOBAL ushort* p, int i, float v) { p[i] = bits_of_bf16(v); }
inline float rounded_bf16(float v) { return as_float((uint)bits_of_bf16(v) << 16); }

// The error function within 3 units in the last place, without branches, so that compilers vectorize it. For |x| < 1 it
// is an odd polynomial, otherwise ±(1 - e^q), where the polynomial q approximates log(1 - erf(|x|)). Beyond ±4 the
// result is ±1.
inline float erf_f32(float x) {
  float t = fabs(x);
  t = t > 4.0f ? 4.0f : t;
  const float s = t * t;
  float p = 7.882497448008507e-05f;
  p = p * s - 8.018855005502701e-04f;
  p = p * s + 5.189312156289816e-03f;
  p = p * s - 2.685432881116867e-02f;
  p = p * s + 1.128359735012054e-01f;
  p = p * s - 3.761262595653534e-01f;
  p = p * s + 1.283791661262512e-01f;
  float q = 7.342138701460499e-07f;
  q = q * t - 1.163509023172082e-05f;
  q = q * t + 5.854854316567071e-05f;
  q = q * t + 1.252433430636302e-04f;
  q = q * t - 3.420318709686398e-03f;
  q = q * t + 2.393699437379837e-02f;
  q = q * t - 1.070715934038162e-01f;
  q = q * t - 6.341199278831482e-01f;
  q = q * t - 1.129234075546265e+00f;
  q = q * t + 1.305398909607902e-04f;
  return copysign(t < 1.0f ? t + t * p : 1.0f - exp(q), x);
}

// The greater of two; NaN wins.
#define GREATER(a, b) (a != a || a > b ? a : b)

// Defines a function that combines the values of a group's LANES work items in a fixed order and returns the result to
// all of them; all must call it, and it is a barrier for them. LANES is a power of two. `join` is an expression that
// combines a and b.
#ifndef JOINED  // kernels/cuda.cl has its own
#define JOINED(name, type, join)                                                  \
  inline type name(type mine, LOCAL type* shared) {                              \
    const int lane = (int)get_local_id(0);                                       \
    shared[lane] = mine;                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                \
    for (int half_of = LANES / 2; half_of > 0; half_of /= 2) {                   \
      if (lane < half_of) {                                                      \
        const type a = shared[lane], b = shared[lane + half_of];                 \
        shared[lane] = join;                                                     \
      }                                                                          \
      barrier(CLK_LOCAL_MEM_FENCE);                                              \
    }                                                                            \
    const type result = shared[0];                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                \
    return result;                                                               \
  }
#endif
