// SPDX-License-Identifier: Apache-2.0
// Maps a run-time data type to a C++ type, as in
//   dispatch<Floats>(dtype, [](auto tag) { using T = typename decltype(tag)::type; … });
#pragma once

#include <type_traits>

#include "kernels/common/float16.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

template <class... Ts>
struct TypeList {};
template <class T>
struct TypeTag {
  using type = T;
};

using Floats = TypeList<float, double, Half, BFloat16>;
using Integers = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using SignedNumbers = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t>;
using Numbers =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using NumbersAndBool = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                uint32_t, uint64_t, Bool>;
using Booleans = TypeList<Bool>;

template <class T>
inline constexpr bp_dtype_t kDtypeOf = BP_DTYPE_UNDEFINED;
template <>
inline constexpr bp_dtype_t kDtypeOf<float> = BP_DTYPE_FLOAT;
template <>
inline constexpr bp_dtype_t kDtypeOf<double> = BP_DTYPE_DOUBLE;
template <>
inline constexpr bp_dtype_t kDtypeOf<Half> = BP_DTYPE_FLOAT16;
template <>
inline constexpr bp_dtype_t kDtypeOf<BFloat16> = BP_DTYPE_BFLOAT16;
template <>
inline constexpr bp_dtype_t kDtypeOf<int8_t> = BP_DTYPE_INT8;
template <>
inline constexpr bp_dtype_t kDtypeOf<int16_t> = BP_DTYPE_INT16;
template <>
inline constexpr bp_dtype_t kDtypeOf<int32_t> = BP_DTYPE_INT32;
template <>
inline constexpr bp_dtype_t kDtypeOf<int64_t> = BP_DTYPE_INT64;
template <>
inline constexpr bp_dtype_t kDtypeOf<uint8_t> = BP_DTYPE_UINT8;
template <>
inline constexpr bp_dtype_t kDtypeOf<uint16_t> = BP_DTYPE_UINT16;
template <>
inline constexpr bp_dtype_t kDtypeOf<uint32_t> = BP_DTYPE_UINT32;
template <>
inline constexpr bp_dtype_t kDtypeOf<uint64_t> = BP_DTYPE_UINT64;
template <>
inline constexpr bp_dtype_t kDtypeOf<Bool> = BP_DTYPE_BOOL;

template <class T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsSmallFloat<T>;

// The type in which single elements are computed.
template <class T>
using compute_t = std::conditional_t<kIsSmallFloat<T>, float, std::conditional_t<std::is_same_v<T, Bool>, bool, T>>;

template <class... Ts>
constexpr bp_dtype_set_t set_of(TypeList<Ts...>) {
  return ((bp_dtype_set_t{1} << kDtypeOf<Ts>) | ...);
}

namespace detail {
template <class T, class... Rest, class F>
auto dispatch(TypeList<T, Rest...>, bp_dtype_t dtype, const F& f) {
  if constexpr (sizeof...(Rest) > 0) {
    if (dtype != kDtypeOf<T>) return dispatch(TypeList<Rest...>{}, dtype, f);
  }
  return f(TypeTag<T>{});
}
}  // namespace detail

// Calls `f` with the tag of the C++ type for `dtype`, which must be in the list: the operator's Row::supports has
// checked that.
template <class List, class F>
auto dispatch(bp_dtype_t dtype, const F& f) {
  return detail::dispatch(List{}, dtype, f);
}

struct Bytes16 {
  uint64_t low, high;
};
// For operators that only move elements: calls `f` with the tag of a type of `size` bytes (1, 2, 4, 8 or 16).
template <class F>
void dispatch_size(int64_t size, const F& f) {
  switch (size) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    case 8:
      return f(TypeTag<uint64_t>{});
    default:
      return f(TypeTag<Bytes16>{});
  }
}

}  // namespace backplane::cpu
