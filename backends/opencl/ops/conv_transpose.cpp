// SPDX-License-Identifier: Apache-2.0
// ConvTranspose: a product gives what each element of the input adds to each tap of its window; the result gathers it.
#include <algorithm>

#include "ops/gemm.h"
#include "ops/table.h"
#include "ops/window.h"

namespace backplane::opencl {
namespace {

// The window of the convolution whose gradient this is; `in` are the extents of x, `out` those of y.
Window transposed_window(const Node& node, const Shape& x, const std::vector<int64_t>& kernel) {
  Window w;
  w.dims = x.size() - 2;
  const std::vector<int64_t> strides = node.ints_attribute("strides"), dilations = node.ints_attribute("dilations"),
                             pads = node.ints_attribute("pads"), extra = node.ints_attribute("output_padding"),
                             wanted = node.ints_attribute("output_shape");
  const std::string_view automatic = node.text_attribute("auto_pad", "NOTSET");
  for (size_t i = 0; i < w.dims; ++i) {
    const size_t d = 3 - w.dims + i;
    w.in[d] = x[2 + i];
    w.kernel[d] = kernel.at(i);
    if (!strides.empty()) w.stride[d] = strides[i];
    if (!dilations.empty()) w.dilation[d] = dilations[i];
    const int64_t more = extra.empty() ? 0 : extra.at(i);
    const int64_t whole = w.stride[d] * (w.in[d] - 1) + more + (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (!wanted.empty() || automatic.starts_with("SAME")) {
      w.out[d] = wanted.empty() ? w.in[d] * w.stride[d] : wanted.at(wanted.size() == x.size() ? i + 2 : i);
      const int64_t cut = std::max<int64_t>(whole - w.out[d], 0);
      w.begin[d] = automatic == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    } else {
      if (!pads.empty() && automatic == "NOTSET") {
        w.begin[d] = pads[i];
        w.end[d] = pads[i + w.dims];
      }
      w.out[d] = whole - w.begin[d] - w.end[d];
    }
    if (w.out[d] < 0)
      throw sdk::Error(BP_TYPE_MISMATCH,
                       "padding leaves " + std::to_string(w.out[d]) + " of dimension " + std::to_string(i + 2));
  }
  return w;
}

void emit_conv_transpose(Emit& e, std::string_view) {
  const Tensor x = e.input(0), k = e.input(1), bias = e.input(2);
  const int64_t groups = e.node.int_attribute("group", 1), maps = k.shape[1] * groups;
  if (groups <= 0 || x.shape[1] % groups != 0 || x.shape[1] != k.shape[0])
    throw sdk::Error(BP_TYPE_MISMATCH, "weights " + to_string(k.shape) + " in " + std::to_string(groups) +
                                           " groups do not fit " + to_string(x.shape));
  if (bias && bias.shape != Shape{maps})
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "a bias " + to_string(bias.shape) + " does not fit " + std::to_string(maps) + " channels");
  const Window w = transposed_window(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()});
  const Tensor y = e.output(0, w.output_shape(x.shape[0], maps));
  if (y.count() == 0) return;
  // Sums of 16-bit floats are rounded once, at the end.
  const bp_dtype_t sum = bytes_of(x.dtype) < 4 ? BP_DTYPE_FLOAT : x.dtype;
  const int64_t per_group = x.shape[1] / groups, rows = k.shape[1] * w.kernel_size(), batch = x.shape[0] * groups;
  const Tensor a = e.computed("$0", sum, {groups, rows, per_group}, {{k, {per_group * rows, 1, rows}, 0}});
  const Tensor b = sum == x.dtype ? x : e.computed("$0", sum, x.shape, {{x, dense_strides(x.shape), 0}});
  const Tensor sums = e.scratch(sum, {x.shape[0], maps, w.kernel_size(), w.in_size()});
  emit_product(e, {.a = a,
                   .b = b,
                   .y = sums,
                   .batch = batch,
                   .m = rows,
                   .n = w.in_size(),
                   .k = per_group,
                   .a_count = groups,
                   .b_count = batch});
  e.launch("conv_transpose", "conv_transpose",
           "-DTYPE=" + Emit::type(y) + " -DSUM=" + Emit::type(sums) + w.macros() + (bias ? " -DBIAS" : ""))
      .in(sums)
      .in(bias ? bias : k)
      .out(y)
      .arg(w.in[0])
      .arg(w.in[1])
      .arg(w.in[2])
      .arg(maps)
      .arg(w.out[0])
      .arg(w.out[1])
      .arg(w.out[2])
      .range(w.out[2], w.out[1], x.shape[0] * maps * w.out[0]);
}

Verdict supports_conv_transpose(const Node& node) {
  if (node.input(1).rank() != node.input(0).rank())
    return sdk::no(BP_REASON_SHAPE, "the weights have rank " + std::to_string(node.input(1).rank()));
  const auto dims = static_cast<size_t>(std::max(node.input(0).rank() - 2, 0));
  const size_t extra = node.ints_attribute("output_padding").size(),
               wanted = node.ints_attribute("output_shape").size();
  if ((extra != 0 && extra != dims) || (wanted != 0 && wanted != dims && wanted != dims + 2))
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "output_padding or output_shape does not fit " + std::to_string(dims) + " dimensions");
  if (Verdict v = same_types(node); !accepted(v)) return v;
  return supports_window(node);
}

constexpr Row kRows[] = {
    {"", "ConvTranspose", 1, kFloats, {2, 3}, supports_conv_transpose, emit_conv_transpose},
};

}  // namespace

std::span<const Row> conv_transpose_rows() {
  return kRows;
}

}  // namespace backplane::opencl
