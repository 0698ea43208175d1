// SPDX-License-Identifier: Apache-2.0
#include "ops/cost.h"

#include <algorithm>

#include "engine/shape.h"

namespace backplane::opencl {
namespace {

// Of the peak that products and convolutions reach.
constexpr double kEfficiency = 0.5;

bool is(const sdk::Node& node, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, node.op_type()) != names.end();
}

}  // namespace

double operations(const sdk::Node& node) {
  double outputs = 0;
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.output(i)) continue;
    if (!node.output(i).has_static_shape()) return 0;
    outputs += static_cast<double>(elements(node.output(i).extents()));
  }
  const sdk::Value x = node.input(0), w = node.input(1);
  if (is(node, {"Conv", "ConvInteger"}) && w.has_static_shape() && w.rank() > 1)
    return 2 * outputs * static_cast<double>(elements(w.extents(), 1, static_cast<size_t>(w.rank())));
  if (is(node, {"ConvTranspose"}) && w.has_static_shape() && x.has_static_shape() && w.rank() > 1)
    return 2 * static_cast<double>(elements(x.extents()) * elements(w.extents(), 1, static_cast<size_t>(w.rank())));
  if (is(node, {"MatMul", "Gemm", "MatMulInteger"}) && x.rank() > 0) {
    const bool transposed = node.int_attribute("transA", 0) != 0;
    const int64_t depth = x.extent(static_cast<uint32_t>(transposed ? 0 : x.rank() - 1));
    return 2 * outputs * static_cast<double>(std::max<int64_t>(depth, 0));
  }
  return outputs;
}

double expected_seconds(const Facts& facts, const sdk::Node& node) {
  double bytes = 0;
  for (uint32_t i = 0; i < node.input_count() + node.output_count(); ++i) {
    const sdk::Value value = i < node.input_count() ? node.input(i) : node.output(i - node.input_count());
    if (!value) continue;
    if (!value.has_static_shape()) return 0;
    bytes += static_cast<double>(elements(value.extents())) * bytes_of(value.dtype());
  }
  return facts.rates.launch_seconds +
         std::max(operations(node) / (facts.rates.flops * kEfficiency), bytes / facts.told_bandwidth());
}

}  // namespace backplane::opencl
