// SPDX-License-Identifier: Apache-2.0
// Sets of data types, for rows of operator tables.
#pragma once

#include <string>

#include "backplane/graph.hpp"

namespace backplane::sdk {

constexpr bp_dtype_set_t one(bp_dtype_t dtype) {
  return bp_dtype_set_t{1} << dtype;
}
constexpr bool contains(bp_dtype_set_t set, bp_dtype_t dtype) {
  return dtype < 64 && (set >> dtype & 1) != 0;
}

inline constexpr bp_dtype_set_t kFloats =
    one(BP_DTYPE_FLOAT) | one(BP_DTYPE_FLOAT16) | one(BP_DTYPE_BFLOAT16) | one(BP_DTYPE_DOUBLE);
inline constexpr bp_dtype_set_t kSignedIntegers =
    one(BP_DTYPE_INT8) | one(BP_DTYPE_INT16) | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64);
inline constexpr bp_dtype_set_t kUnsignedIntegers =
    one(BP_DTYPE_UINT8) | one(BP_DTYPE_UINT16) | one(BP_DTYPE_UINT32) | one(BP_DTYPE_UINT64);
inline constexpr bp_dtype_set_t kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr bp_dtype_set_t kBooleans = one(BP_DTYPE_BOOL);
inline constexpr bp_dtype_set_t kNumbers = kFloats | kIntegers;
// Excludes strings, complex numbers, fp8 and types below 8 bits.
inline constexpr bp_dtype_set_t kAnything = kNumbers | kBooleans;

// Bytes of one element; 0 for strings and types below 8 bits.
inline uint32_t bytes_of(bp_dtype_t dtype) {
  return view::dtype_bits(dtype) / 8;
}
// Whether the type is one of kFloats.
constexpr bool is_float(bp_dtype_t dtype) {
  return contains(kFloats, dtype);
}

// The types of a set as text, such as "float, double"; "none" for the empty set.
inline std::string to_string(bp_dtype_set_t set) {
  std::string names;
  for (bp_dtype_t dtype = 0; dtype < 64; ++dtype) {
    if (contains(set, dtype)) names.append(names.empty() ? "" : ", ").append(view::dtype_name(dtype));
  }
  return names.empty() ? "none" : names;
}

}  // namespace backplane::sdk
