// SPDX-License-Identifier: Apache-2.0
// Checks of nodes with strings, containers or graphs, and access to small values.
#pragma once

#include "kernels/common/support.h"
#include "runtime/row.h"
#include "runtime/value_kernel.h"

namespace backplane::cpu {

using Values = std::span<Value>;
using Failed = std::optional<std::string>;

inline Verdict anything(const Node&) {
  return yes();
}

// Whether all inputs from `first` on and all outputs are there.
Verdict expect_operands(const Node& node, uint32_t inputs, uint32_t outputs);

template <class T>
Value make_scalar(bp_dtype_t dtype, T number, const Shape& shape = {}) {
  Value value = Value::allocate(dtype, shape);
  *value.tensor.as<T>() = number;
  return value;
}

// The only element of an INT32 or INT64 tensor; nothing where there are others or none.
std::optional<int64_t> integer(const Value& value);

// Copies of the strings of a tensor.
std::vector<std::string_view> views(const Tensor& tensor);

}  // namespace backplane::cpu
