// SPDX-License-Identifier: Apache-2.0
#include "engine/shape.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::opencl {

std::string_view type_name(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return "f32";
    case BP_DTYPE_FLOAT16:
      return "f16";
    case BP_DTYPE_BFLOAT16:
      return "bf16";
    case BP_DTYPE_DOUBLE:
      return "f64";
    case BP_DTYPE_INT8:
      return "i8";
    case BP_DTYPE_INT16:
      return "i16";
    case BP_DTYPE_INT32:
      return "i32";
    case BP_DTYPE_INT64:
      return "i64";
    case BP_DTYPE_UINT8:
      return "u8";
    case BP_DTYPE_UINT16:
      return "u16";
    case BP_DTYPE_UINT32:
      return "u32";
    case BP_DTYPE_UINT64:
      return "u64";
    case BP_DTYPE_BOOL:
      return "b8";
  }
  throw sdk::Error(BP_UNSUPPORTED, "kernels have no type " + std::string(view::dtype_name(dtype)));
}

std::string_view word_name(bp_dtype_t dtype) {
  switch (bytes_of(dtype)) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    default:
      return "u64";
  }
}

uint32_t bytes_of(bp_dtype_t dtype) {
  return view::dtype_bits(dtype) / 8;
}

bool is_float(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT || dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16 || dtype == BP_DTYPE_DOUBLE;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& extent = result[skip + i];
    if (extent == shorter[i] || shorter[i] == 1) continue;
    if (extent != 1)
      throw sdk::Error(BP_TYPE_MISMATCH, "extents " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    extent = shorter[i];
  }
  return result;
}

size_t axis_of(int64_t axis, size_t rank) {
  const int64_t at = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  if (at < 0 || at >= static_cast<int64_t>(rank)) {
    throw sdk::Error(BP_INVALID_MODEL,
                     "axis " + std::to_string(axis) + " is beyond the rank of " + std::to_string(rank));
  }
  return static_cast<size_t>(at);
}

}  // namespace backplane::opencl
