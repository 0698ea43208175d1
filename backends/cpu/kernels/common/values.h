// SPDX-License-Identifier: Apache-2.0
// Checks of nodes with strings, containers or subgraphs, and access to small values.
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

// Whether the first `inputs` inputs are present and the node has at least `outputs` outputs.
Verdict expect_operands(const Node& node, uint32_t inputs, uint32_t outputs);

template <class T>
Value make_scalar(bp_dtype_t dtype, T number, const Shape& shape = {}) {
  Value value = Value::allocate(dtype, shape);
  *value.tensor.as<T>() = number;
  return value;
}

// Returns the only element of an INT32 or INT64 tensor, or nullopt for any other value.
std::optional<int64_t> integer(const Value& value);

// Returns views of a tensor's strings, which are valid as long as the tensor's data.
std::vector<std::string_view> views(const Tensor& tensor);

}  // namespace backplane::cpu
