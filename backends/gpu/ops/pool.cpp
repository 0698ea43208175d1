// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool and their global forms.
#include <algorithm>

#include "ops/rows.h"
#include "ops/table.h"
#include "ops/window.h"

namespace backplane::gpu {
namespace {

// Defines P, the order of the norm, for the kernels.
std::string norm(Emit& e) {
  return " -DP=" + std::to_string(e.node.int_attribute("p", 2));
}

// Lines of the result shorter than kLeastLine are not vectorized; lines longer than kLongestLine are split.
constexpr int64_t kLeastLine = 4, kLongestLine = 64;

void emit_lines(Emit& e, const Tensor& x, const Tensor& y, const Window& w, const std::string& options) {
  const int64_t line = std::min(w.out[2], kLongestLine);
  e.launch("pool_lines", "pool_lines", options + " -DLINE=" + std::to_string(line),
           "#define LEAST " + extreme(x.dtype, true) + "\n")
      .in(x)
      .out(y)
      .arg(w.in[0])
      .arg(w.in[1])
      .arg(w.in[2])
      .arg(w.out[0])
      .arg(w.out[1])
      .arg(w.out[2])
      .arg(w.end[0])
      .arg(w.end[1])
      .arg(w.end[2])
      .range((w.out[2] + line - 1) / line, w.out[1], x.shape[0] * x.shape[1] * w.out[0]);
}

void emit_pool(Emit& e, std::string_view kind) {
  const Tensor x = e.input(0);
  const Window w{sdk::window_of(e.node, x.shape, e.node.ints_attribute("kernel_shape"))};
  const Tensor y = e.output(0, w.output_shape(x.shape[0], x.shape[1]));
  const bool counts_padding = kind == "1" && e.node.int_attribute("count_include_pad", 0) != 0;
  std::string options =
      "-DTYPE=" + Emit::type(x) + w.macros() + " -DKIND=" + (counts_padding ? "2" : std::string(kind));
  const int64_t planes = x.shape[0] * x.shape[1] * w.out[0];
  const bool narrow = w.stride[2] <= 4 && w.kernel[2] * w.dilation[2] <= kLongestLine;
  if (e.caps().kind == BP_DEVICE_CPU && kind != "3" && !e.has_output(1) && w.out[2] >= kLeastLine && narrow)
    return emit_lines(e, x, y, w, options);
  if (kind == "3") options += norm(e);
  const std::string least = "#define LEAST " + extreme(x.dtype, true) + "\n";
  if (e.has_output(1)) options += " -DINDICES";
  if (e.node.int_attribute("storage_order", 0) != 0) options += " -DBY_COLUMN";
  LaunchBuilder launch = e.launch("pool", "pool", options, least);
  launch.in(x).out(y).arg(w.in[0]).arg(w.in[1]).arg(w.in[2]).arg(w.out[0]).arg(w.out[1]).arg(w.out[2]);
  launch.arg(w.end[0]).arg(w.end[1]).arg(w.end[2]);
  if (e.has_output(1)) launch.out(e.output(1, y.shape));
  launch.range(w.out[2], w.out[1], planes);
}

void emit_global_pool(Emit& e, std::string_view kind) {
  const Tensor x = e.input(0);
  Shape shape(x.rank(), 1);
  shape[0] = x.shape[0];
  shape[1] = x.shape[1];
  const Tensor y = e.output(0, shape);
  if (x.count() == 0 && y.count() != 0) throw sdk::Error(BP_INVALID_ARGUMENT, "input 0 has no elements to pool");
  e.launch("global_pool", "global_pool",
           "-DTYPE=" + Emit::type(x) + " -DKIND=" + std::string(kind) + (kind == "3" ? norm(e) : ""))
      .in(x)
      .out(y)
      .arg(y.count())
      .arg(elements(x.shape, 2, x.rank()))
      .range(y.count());
}

Verdict supports_pool(const Node& node) {
  return expect(node)
      .output_dtype(1, one(BP_DTYPE_INT64))
      .that(!node.ints_attribute("kernel_shape").empty(), BP_REASON_ATTRIBUTE, "kernel_shape is missing")
      .also(supports_window);
}

Verdict supports_global_pool(const Node& node) {
  bool empty = false;
  for (int32_t i = 2; i < node.input(0).rank(); ++i)
    empty = empty || node.input(0).extent(static_cast<uint32_t>(i)) == 0;
  return expect(node).rank(0, 3).that(!empty, BP_REASON_SHAPE, "input 0 has no elements to pool");
}

}  // namespace

std::span<const Row> pool_rows() {
  static constexpr Row kRows[] = {
      {"", "MaxPool", 8, kNumbers, {1, 1, Form::kSame, 2}, supports_pool, emit_pool, "0"},
      {"", "AveragePool", 7, kFloats, kUnary, supports_pool, emit_pool, "1"},
      {"", "LpPool", 11, kFloats, kUnary, supports_pool, emit_pool, "3"},
      {"", "GlobalLpPool", 2, kFloats, kUnary, supports_global_pool, emit_global_pool, "3"},
      {"", "GlobalMaxPool", 1, kFloats, kUnary, supports_global_pool, emit_global_pool, "0"},
      {"", "GlobalAveragePool", 1, kFloats, kUnary, supports_global_pool, emit_global_pool, "1"},
  };
  return kRows;
}

}  // namespace backplane::gpu
