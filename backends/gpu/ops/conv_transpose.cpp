// SPDX-License-Identifier: Apache-2.0
// ConvTranspose as two kernels: a matrix product computes what each input position contributes to each tap of its
// window; a second kernel sums the contributions to each output element.
#include <algorithm>

#include "ops/gemm.h"
#include "ops/table.h"
#include "ops/window.h"

namespace backplane::gpu {
namespace {

void emit_conv_transpose(Emit& e, std::string_view) {
  const Tensor x = e.input(0), k = e.input(1), bias = e.input(2);
  const int64_t groups = e.node.int_attribute("group", 1), maps = k.shape[1] * groups;
  if (groups <= 0 || x.shape[1] % groups != 0 || x.shape[1] != k.shape[0])
    throw sdk::Error(BP_TYPE_MISMATCH, "weights of shape " + to_string(k.shape) + " in " + std::to_string(groups) +
                                           " groups do not fit input 0 of shape " + to_string(x.shape));
  if (bias && bias.shape != Shape{maps})
    throw sdk::Error(BP_TYPE_MISMATCH, "the bias has shape " + to_string(bias.shape) + " instead of " +
                                           to_string(Shape{maps}) + ", one number per channel");
  const Window w{sdk::transposed_window(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()})};
  const Tensor y = e.output(0, w.output_shape(x.shape[0], maps));
  if (y.count() == 0) return;
  // fp16 and bf16 are summed in fp32 and rounded once, at the end.
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
  const int32_t rank = node.input(0).rank();
  const auto dims = static_cast<size_t>(std::max(rank - 2, 0));
  const size_t extra = node.ints_attribute("output_padding").size(),
               wanted = node.ints_attribute("output_shape").size();
  const bool fits = (extra == 0 || extra == dims) && (wanted == 0 || wanted == dims || wanted == dims + 2);
  return expect(node)
      .rank(1, rank, rank)
      .that(fits, BP_REASON_ATTRIBUTE, "output_padding or output_shape has the wrong number of extents")
      .same_dtypes()
      .also(supports_window);
}

}  // namespace

std::span<const Row> conv_transpose_rows() {
  static constexpr Row kRows[] = {
      {"", "ConvTranspose", 1, kFloats, {2, 3}, supports_conv_transpose, emit_conv_transpose},
  };
  return kRows;
}

}  // namespace backplane::gpu
