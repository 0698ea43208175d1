// SPDX-License-Identifier: Apache-2.0
// Gather, Scatter and OneHot in their first forms, whose indices count from the start. For an index outside the tensor,
// Gather returns NaN, Scatter writes nothing, and OneHot writes only `off` values.
#pragma once

#include <cmath>

#include "tensor.h"

namespace vendor {

inline bool is_indexed(const std::string& op) {
  return op == "Gather" || op == "Scatter" || op == "OneHot";
}

inline int64_t axis_of(const Node& node, int64_t otherwise) {
  const auto found = node.ints.find("axis");
  return found == node.ints.end() ? otherwise : found->second.at(0);
}

// Throws an onnxStatus if the node has a wrong number of inputs or an unsupported axis: only the first is supported,
// for OneHot only the last.
inline void check_indexed(const Node& node, size_t output_rank) {
  const bool is_one_hot = node.op == "OneHot";
  if (node.inputs.size() != (node.op == "Gather" ? 2 : 3)) throw ONNXIFI_STATUS_INVALID_MODEL;
  if (axis_of(node, is_one_hot ? -1 : 0) != (is_one_hot ? static_cast<int64_t>(output_rank) - 1 : 0))
    throw ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
}

inline Tensor compute_indexed(const Node& node, const std::map<std::string, Tensor>& values, const Shape& shape) {
  const Tensor &first = values.at(node.inputs[0]), &second = values.at(node.inputs[1]);
  Tensor y{shape, std::vector<float>(count(shape))};
  if (node.op == "OneHot") {
    const Tensor& off_on = values.at(node.inputs[2]);
    const auto depth = static_cast<size_t>(shape.back());
    for (size_t i = 0; i < y.data.size(); ++i)
      y.data[i] = off_on.data[first.data[i / depth] == static_cast<float>(i % depth) ? 1 : 0];
    return y;
  }
  const auto extent = static_cast<float>(first.shape[0]);
  const size_t row = first.data.size() / static_cast<size_t>(first.shape[0]);
  if (node.op == "Scatter") y.data = first.data;
  for (size_t i = 0; i < second.data.size(); ++i) {
    const float index = second.data[i];
    const bool is_inside = index >= 0 && index < extent;
    const auto from = static_cast<size_t>(is_inside ? index : 0) * row;
    if (node.op == "Scatter") {
      if (is_inside) y.data[from + i % row] = values.at(node.inputs[2]).data[i];
      continue;
    }
    for (size_t j = 0; j < row; ++j) y.data[i * row + j] = is_inside ? first.data[from + j] : std::nanf("");
  }
  return y;
}

}  // namespace vendor
