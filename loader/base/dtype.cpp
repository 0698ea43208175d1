// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <iterator>

namespace backplane {
namespace {

struct Dtype {
  std::string_view name;
  uint32_t bits;
};

// Indexed by data type.
constexpr Dtype kDtypes[] = {
    {"unknown", 0},        {"float", 32},    {"uint8", 8},        {"int8", 8},           {"uint16", 16},
    {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
    {"float16", 16},       {"double", 64},   {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},          {"int2", 2},
};

}  // namespace

std::string_view dtype_name(bp_dtype_t dtype) {
  return kDtypes[dtype < std::size(kDtypes) ? dtype : 0].name;
}

bp_dtype_t dtype_of(std::string_view name) {
  for (bp_dtype_t dtype = 1; dtype < std::size(kDtypes); ++dtype) {
    if (kDtypes[dtype].name == name) return dtype;
  }
  return BP_DTYPE_UNDEFINED;
}

uint32_t dtype_bits(bp_dtype_t dtype) {
  return kDtypes[dtype < std::size(kDtypes) ? dtype : 0].bits;
}

uint64_t dense_elements(uint32_t rank, const int64_t* extents) {
  uint64_t elements = 1;
  bool is_empty = false, is_absurd = false;
  for (uint32_t i = 0; i < rank; ++i) {
    is_empty = is_empty || extents[i] == 0;
    is_absurd =
        is_absurd || extents[i] < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(extents[i]), &elements);
  }
  return is_empty ? 0 : is_absurd ? UINT64_MAX : elements;
}

uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents) {
  if (dtype == BP_DTYPE_STRING) return 0;
  const uint64_t elements = dense_elements(rank, extents);
  uint64_t bits = 0;
  if (__builtin_mul_overflow(elements, static_cast<uint64_t>(dtype_bits(dtype)), &bits)) return UINT64_MAX;
  return bits / 8 + (bits % 8 != 0);
}

}  // namespace backplane
