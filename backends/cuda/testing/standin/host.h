// SPDX-License-Identifier: Apache-2.0
// Included before each kernel that the stand-in for NVRTC compiles for the host: defines the part of CUDA C++ that
// kernels/cuda.cl uses. For each kernel, a module exports functions that copy its arguments and run its work groups;
// image.h declares them for the caller. Includes no header itself, so that a kernel compiles in a tenth of a second.
#define __global__ BACKPLANE_KERNEL
#define __shared__ static thread_local
#define __restrict__ __restrict

struct Dim3 {
  unsigned x, y, z;
};
static thread_local Dim3 threadIdx, blockIdx, blockDim;

// Set when the module is loaded: lets the other work items of the group run until all have reached the barrier.
extern "C" void (*standin_barrier)();
void (*standin_barrier)() = nullptr;
inline void __syncthreads() {
  const Dim3 own = threadIdx;
  standin_barrier();
  threadIdx = own;
}

inline float __int_as_float(int bits) {
  return __builtin_bit_cast(float, bits);
}
inline float __uint_as_float(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}
inline unsigned __float_as_uint(float value) {
  return __builtin_bit_cast(unsigned, value);
}
#define HALF_CONVERSIONS
inline float half_to_float(unsigned short bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
inline unsigned short float_to_half(float value) {
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(value));
}

// Exchanges values within a warp, at a barrier of the whole group: all items of the group must call this, as they do in
// the kernels that are tested. For a lane that does not exist, or is not in `mask`, returns the caller's own value.
template <class T>
inline T standin_exchange(unsigned mask, T value, unsigned from) {
  static thread_local T values[1024];
  const unsigned own = threadIdx.x, source = own / 32 * 32 + from;
  values[own] = value;
  __syncthreads();
  const bool exists = from < 32 && source < blockDim.x && (mask >> from & 1) != 0;
  const T found = exists ? values[source] : value;
  __syncthreads();
  return found;
}
inline void __syncwarp(unsigned) {
  __syncthreads();
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int from) {
  return standin_exchange(mask, value, static_cast<unsigned>(from));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  return standin_exchange(mask, value, threadIdx.x % 32 + by);
}

#define UNARY(name)                \
  inline float name(float v) {     \
    return __builtin_##name##f(v); \
  }                                \
  inline double name(double v) {   \
    return __builtin_##name(v);    \
  }
#define BINARY(name)                       \
  inline float name(float a, float b) {    \
    return __builtin_##name##f(a, b);      \
  }                                        \
  inline double name(double a, double b) { \
    return __builtin_##name(a, b);         \
  }
UNARY(acos);
UNARY(acosh);
UNARY(asin);
UNARY(asinh);
UNARY(atan);
UNARY(atanh);
UNARY(ceil);
UNARY(cos);
UNARY(cosh);
UNARY(erf);
UNARY(exp);
UNARY(expm1);
UNARY(fabs);
UNARY(floor);
UNARY(log);
UNARY(log1p);
UNARY(rint);
UNARY(sin);
UNARY(sinh);
UNARY(sqrt);
UNARY(tan);
UNARY(tanh);
BINARY(copysign);
BINARY(fmod);
// As in CUDA, arguments of different types are converted to the wider one.
template <class A, class B>
inline auto pow(A a, B b) {
  if constexpr (sizeof(a + b) == sizeof(float))
    return __builtin_powf(a, b);
  else
    return __builtin_pow(a, b);
}
inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
inline float fmaf(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
template <class T>
inline bool isnan(T v) {
  return v != v;
}
template <class T>
inline bool isinf(T v) {
  return __builtin_isinf(v);
}
template <class T>
inline bool isfinite(T v) {
  return __builtin_isfinite(v);
}
template <class T>
inline auto abs(T v) {
  return v < 0 ? -v : +v;
}
template <class A, class B>
inline auto min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
inline auto max(A a, B b) {
  return a < b ? b : a;
}

// ---- kernels -------------------------------------------------------------------------------------------------------

inline void* operator new(__SIZE_TYPE__, void* place) noexcept {
  return place;
}
template <class... Values>
struct Pack;
template <>
struct Pack<> {
  explicit Pack(void**) {}
  template <class Function, class... Before>
  void call(Function function, Before... before) const {
    function(before...);
  }
};
template <class First, class... Rest>
struct Pack<First, Rest...> {
  First first;
  Pack<Rest...> rest;
  explicit Pack(void** values) : first(*static_cast<First*>(values[0])), rest(values + 1) {}
  template <class Function, class... Before>
  void call(Function function, Before... before) const {
    rest.call(function, before..., first);
  }
};

// The functions of one kernel. Must have the layout of standin::Kernel in image.h.
struct StandinKernel {
  void* (*pack)(void** values);
  void (*run_item)(const void* pack);   // runs one work item, for kernels with barriers
  void (*run_group)(const void* pack);  // runs all work items of a group, for kernels without barriers
  void (*place)(const unsigned* item, const unsigned* group, const unsigned* size);
  int has_barrier;
};
template <class Signature>
struct Launcher;
template <class... Values>
struct Launcher<void(Values...)> {
  using Function = void(Values...);
  template <Function* kFunction, int kHasBarrier>
  static constexpr StandinKernel make() {
    return {
        [](void** values) -> void* { return new (__builtin_malloc(sizeof(Pack<Values...>))) Pack<Values...>(values); },
        [](const void* pack) { static_cast<const Pack<Values...>*>(pack)->call(kFunction); },
        [](const void* pack) {
          for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
            for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
              for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
                static_cast<const Pack<Values...>*>(pack)->call(kFunction);
        },
        [](const unsigned* item, const unsigned* group, const unsigned* size) {
          threadIdx = {item[0], item[1], item[2]};
          blockIdx = {group[0], group[1], group[2]};
          blockDim = {size[0], size[1], size[2]};
        },
        kHasBarrier};
  }
};
