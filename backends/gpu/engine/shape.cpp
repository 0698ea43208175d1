// SPDX-License-Identifier: Apache-2.0
#include "engine/shape.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {

std::vector<bool> axis_set(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> set(rank);
  for (const int64_t axis : axes) {
    std::vector<bool>::reference named = set[axis_of(axis, rank)];
    if (named)
      throw sdk::Error(BP_INVALID_ARGUMENT, "axis " + std::to_string(axis) + " is repeated in " + to_string(axes));
    named = true;
  }
  return set;
}

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

}  // namespace backplane::gpu
