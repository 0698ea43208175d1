// SPDX-License-Identifier: Apache-2.0
// Conv: a product with the windows as columns; where the kernel is 1 × 1 with the input as it is; by the definition
// where groups are small.
#include "ops/conv.h"

#include "ops/gemm.h"
#include "ops/table.h"
#include "ops/window.h"

namespace backplane::opencl {
namespace {

// A group's product is worth its columns from this many rows on.
constexpr int64_t fewest_maps = 4;

bool is_pointwise(const Window& w) {
  const Spatial ones{1, 1, 1}, zeros{0, 0, 0};
  return w.kernel == ones && w.stride == ones && w.begin == zeros && w.end == zeros;
}

void emit_direct(Emit& e, const Window& w, const Tensor& x, const Tensor& k, const Tensor& bias, const Tensor& y,
                 int64_t groups) {
  LaunchBuilder launch = e.launch(
      "conv", "direct",
      "-DTYPE=" + Emit::type(x) + w.macros() + (bias ? " -DBIAS" : "") + (is_float(x.dtype) ? "" : " -DINTEGER"));
  launch.in(x).in(k).in(bias ? bias : k).out(y).arg(x.shape[1]).arg(w.in[0]).arg(w.in[1]).arg(w.in[2]);
  launch.arg(y.shape[1]).arg(w.out[0]).arg(w.out[1]).arg(w.out[2]).arg(k.shape[1]).arg(y.shape[1] / groups);
  launch.range(w.out[2], w.out[1], y.shape[0] * y.shape[1] * w.out[0]);
}

void check_channels(const Tensor& x, const Tensor& k, const Tensor& bias, int64_t groups) {
  const int64_t maps = k.shape[0];
  if (groups <= 0 || maps % groups != 0 || x.shape[1] != k.shape[1] * groups)
    throw sdk::Error(BP_TYPE_MISMATCH, "weights " + to_string(k.shape) + " in " + std::to_string(groups) +
                                           " groups do not fit " + to_string(x.shape));
  if (bias && bias.shape != Shape{maps})
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "a bias " + to_string(bias.shape) + " does not fit " + std::to_string(maps) + " channels");
}

void emit_conv(Emit& e, std::string_view) {
  const Tensor x = e.input(0), k = e.input(1);
  const int64_t groups = e.node.int_attribute("group", 1), batch = x.shape[0], maps = k.shape[0];
  check_channels(x, k, e.input(2), groups);
  const Window w = window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()});
  const Tensor y = e.output(0, w.output_shape(batch, maps));
  if (y.count() == 0) return;
  if (maps / groups < fewest_maps || x.dtype != BP_DTYPE_FLOAT) return emit_direct(e, w, x, k, e.input(2), y, groups);
  Tensor columns = x;
  const int64_t lines = x.shape[1] * w.kernel_size();
  if (!is_pointwise(w)) {
    columns = e.scratch(x.dtype, {batch, lines, w.out_size()});
    e.launch("columns", "columns", "-DTYPE=" + std::string(word_name(x.dtype)) + w.macros())
        .in(x)
        .out(columns)
        .arg(x.shape[1])
        .arg(w.in[0])
        .arg(w.in[1])
        .arg(w.in[2])
        .arg(w.out[0])
        .arg(w.out[1])
        .arg(w.out[2])
        .range(w.out[2], lines, batch * w.out[0] * w.out[1]);
  }
  Product p{.a = k,
            .b = columns,
            .y = y,
            .batch = batch * groups,
            .m = maps / groups,
            .n = w.out_size(),
            .k = lines / groups};
  p.a_count = groups;
  p.b_count = p.batch;
  if (e.has_input(2)) {
    p.bias = e.input(2);
    p.bias_of = Product::Bias::kRows;
  }
  emit_product(e, p);
}

Verdict supports_conv(const Node& node) {
  if (node.input(1).rank() != node.input(0).rank())
    return sdk::no(BP_REASON_SHAPE, "the weights have rank " + std::to_string(node.input(1).rank()));
  const std::vector<int64_t> kernel = node.ints_attribute("kernel_shape");
  for (uint32_t i = 0; i < kernel.size() && i + 2 < static_cast<uint32_t>(node.input(1).rank()); ++i) {
    const int64_t extent = node.input(1).extent(i + 2);
    if (extent >= 0 && extent != kernel[i])
      return sdk::no(BP_REASON_ATTRIBUTE, "kernel_shape says " + std::to_string(kernel[i]) +
                                              " where the weights have " + std::to_string(extent));
  }
  if (Verdict v = same_types(node); !accepted(v)) return v;
  return supports_window(node);
}

constexpr Row rows[] = {
    {"", "Conv", 1, floats, {2, 3}, supports_conv, emit_conv},
};

}  // namespace

Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias) {
  const int64_t groups = e.node.int_attribute("group", 1), maps = k.shape[0];
  check_channels(x, k, bias, groups);
  const Window w = window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()});
  const Tensor y = e.scratch(x.dtype, w.output_shape(x.shape[0], maps));
  if (y.count() != 0) emit_direct(e, w, x, k, bias, y, groups);
  return y;
}

std::span<const Row> conv_rows() {
  return rows;
}

}  // namespace backplane::opencl
