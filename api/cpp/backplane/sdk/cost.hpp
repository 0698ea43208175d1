// SPDX-License-Identifier: Apache-2.0
// The cost of a node regardless of the device: its arithmetic and memory traffic. A device divides them by its
// throughput.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "backplane/sdk/coverage.hpp"
#include "backplane/sdk/shape.hpp"

namespace backplane::sdk {

// The number of arithmetic operations of a node; a multiply-add counts as two. 0 if extents that it depends on are
// unknown. MatMul, Gemm, Conv, ConvTranspose, MatMulInteger and ConvInteger are counted by their definition, every
// other operator as one operation per output element.
inline double operations(const Node& node) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), node.op_type()) != names.end();
  };
  double outputs = 0;
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.output(i)) continue;
    if (!node.output(i).has_static_shape()) return 0;
    outputs += static_cast<double>(elements(node.output(i)));
  }
  const Value x = node.input(0), w = node.input(1);
  // The number of multiplications for each output element or, in a transposed convolution, for each input element. A
  // double, because the product of the extents that a graph declares may exceed 64 bits.
  const auto filter = [&] {
    double product = 1;
    for (uint32_t i = 1; i < static_cast<uint32_t>(w.rank()); ++i) product *= static_cast<double>(w.extent(i));
    return product;
  };
  const bool is_known = x && w && w.has_static_shape();
  if (is({"Conv", "ConvInteger"})) return is_known ? 2 * outputs * filter() : 0;
  if (is({"ConvTranspose"}))
    return is_known && x.has_static_shape() ? 2 * static_cast<double>(elements(x)) * filter() : 0;
  if (is({"MatMul", "Gemm", "MatMulInteger"})) {
    if (!x || x.rank() <= 0) return 0;
    const bool transposed = node.int_attribute("transA", 0) != 0;
    const int64_t depth = x.extent(static_cast<uint32_t>(transposed ? 0 : x.rank() - 1));
    return 2 * outputs * static_cast<double>(std::max<int64_t>(depth, 0));
  }
  return outputs;
}

// Bytes that a node reads and writes if nothing is cached. nullopt if an operand's extents are unknown.
inline std::optional<double> bytes_moved(const Node& node) {
  double bytes = 0;
  for (uint32_t i = 0; i < node.input_count() + node.output_count(); ++i) {
    const Value value = i < node.input_count() ? node.input(i) : node.output(i - node.input_count());
    if (!value) continue;
    if (!value.has_static_shape()) return std::nullopt;
    bytes += static_cast<double>(elements(value)) * view::dtype_bits(value.dtype()) / 8;
  }
  return bytes;
}

}  // namespace backplane::sdk
