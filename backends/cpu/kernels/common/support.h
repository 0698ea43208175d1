// SPDX-License-Identifier: Apache-2.0
// Checks that most operators need before they accept a node, and access to small integer inputs (axes, shapes, pads).
#pragma once

#include <initializer_list>

#include "kernels/common/dtype_dispatch.h"
#include "runtime/row.h"

namespace backplane::cpu {

// The minimum number of elements per chunk of a parallel loop: for cheap operations (a few instructions), and for
// operations that call a libm function.
inline constexpr int64_t kCheapGrain = 16384;
inline constexpr int64_t kMathGrain = 4096;

constexpr bp_dtype_set_t just(bp_dtype_t dtype) {
  return bp_dtype_set_t{1} << dtype;
}
inline constexpr bp_dtype_set_t kFloatTypes = set_of(Floats{});
inline constexpr bp_dtype_set_t kIndexTypes = just(BP_DTYPE_INT32) | just(BP_DTYPE_INT64);
// Types whose elements are whole bytes. Operators that only move elements accept all of them.
inline constexpr bp_dtype_set_t kByteTypes = set_of(NumbersAndBool{}) | just(BP_DTYPE_COMPLEX64) |
                                             just(BP_DTYPE_COMPLEX128) | just(BP_DTYPE_FLOAT8E4M3FN) |
                                             just(BP_DTYPE_FLOAT8E4M3FNUZ) | just(BP_DTYPE_FLOAT8E5M2) |
                                             just(BP_DTYPE_FLOAT8E5M2FNUZ) | just(BP_DTYPE_FLOAT8E8M0);
inline constexpr bp_dtype_set_t kPackedTypes =
    just(BP_DTYPE_UINT4) | just(BP_DTYPE_INT4) | just(BP_DTYPE_FLOAT4E2M1) | just(BP_DTYPE_UINT2) | just(BP_DTYPE_INT2);

const char* dtype_name(bp_dtype_t dtype);

// Whether the first `required` inputs are present, each present input has a type in its set of `inputs`, and the node
// has no more inputs than there are sets.
Verdict accepts(const Node& node, uint32_t required, std::initializer_list<bp_dtype_set_t> inputs);
// Whether there is at least one input, and all inputs are present and have the same type, which is in `types`.
Verdict accepts_variadic(const Node& node, bp_dtype_set_t types);
// Whether a string attribute has one of the values; `fallback` is its default.
Verdict attribute_in(const Node& node, std::string_view name, const char* fallback,
                     std::initializer_list<std::string_view> values);
// Whether inputs `a` and `b` have the same element type.
Verdict same_type(const Node& node, uint32_t a, uint32_t b);
// Whether the data type that an attribute states (`dtype`) is in `types` and equals that of the first output. Without
// this check, a kernel would write values of the stated type into memory of the declared type.
Verdict returns_type(const Node& node, std::string_view attribute, int64_t dtype, bp_dtype_set_t types);

// Whether the tensor's values can be read while planning.
inline bool known(const Tensor& tensor) {
  return tensor.data != nullptr || tensor.shape.elements() == 0;
}
// Returns the tensor in a slot, or an absent tensor.
inline Tensor at(std::span<const Tensor> tensors, size_t slot) {
  return slot < tensors.size() ? tensors[slot] : Tensor{};
}
// Returns the values of an INT32 or INT64 tensor.
std::vector<int64_t> integers(const Tensor& tensor);
// Returns the first element of a tensor of any number type or BOOL.
double scalar(const Tensor& tensor);

// Returns an axis counted from the front, or -1 if it is out of range.
inline int axis_of(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return -1;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}
Plan bad_axis(int64_t axis, int rank);
// Returns a set with bit i for each axis i in the list, or nullopt if an axis is repeated or out of range, which
// axes_error then describes. Negative axes count from the back.
std::optional<uint64_t> axis_set(std::span<const int64_t> axes, int rank);
std::string axes_error(std::span<const int64_t> axes, int rank);

// Returns the distance in elements between adjacent positions of each dimension of a dense tensor.
Shape strides_of(const Shape& shape);

}  // namespace backplane::cpu
