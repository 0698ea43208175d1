// SPDX-License-Identifier: Apache-2.0
// Conv: a matrix product whose columns are the windows. The columns are never stored: the input is split into phases,
// so that the elements that one tap of the window reads are contiguous (kernels/polyphase.cl), and each line of the
// matrix is read from the first element of its tap.
#include "ops/conv.h"

#include "ops/gemm.h"
#include "ops/polyphase.h"
#include "ops/table.h"
#include "ops/winograd.h"

namespace backplane::gpu {
namespace {

// Convolves x [N, C, ...] with weights k [maps, C / groups, ...] into y [N, maps, ...]; `bias` may be empty.
void emit_windows(Emit& e, const Window& w, const Tensor& x, const Tensor& k, const Tensor& bias, const Tensor& y) {
  const int64_t groups = e.node.int_attribute("group", 1), maps = k.shape[0];
  if (groups <= 0 || maps % groups != 0 || x.shape[1] != k.shape[1] * groups)
    throw sdk::Error(BP_TYPE_MISMATCH, "weights " + to_string(k.shape) + " in " + std::to_string(groups) +
                                           " groups do not fit " + to_string(x.shape));
  if (bias && bias.shape != Shape{maps})
    throw sdk::Error(BP_TYPE_MISMATCH, "the bias has shape " + to_string(bias.shape) + " instead of " +
                                           to_string(Shape{maps}) + ", one number per channel");
  if (y.count() == 0) return;
  if (suits_winograd(e, w, x, k)) return emit_winograd(e, w, x, k, bias, y);
  Product p{.a = k,
            .b = to_polyphase(e, w, x),
            .y = y,
            .batch = x.shape[0] * groups,
            .m = maps / groups,
            .n = w.out_size(),
            .k = k.shape[1] * w.kernel_size(),
            .a_count = groups,
            .b_count = x.shape[0] * groups,
            .window = w.kernel_size() == 1 ? nullptr : &w};
  if (bias) {
    p.bias = bias;
    p.bias_of = Product::Bias::kRows;
  }
  emit_product(e, p);
}

void emit_conv(Emit& e, std::string_view) {
  const Tensor x = e.input(0), k = e.input(1);
  const Window w{sdk::window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()})};
  emit_windows(e, w, x, k, e.input(2), e.output(0, w.output_shape(x.shape[0], k.shape[0])));
}

Verdict supports_conv(const Node& node) {
  const int32_t rank = node.input(0).rank();
  if (Verdict v = expect(node).rank(1, rank, rank).same_dtypes(); !accepted(v)) return v;
  const std::vector<int64_t> kernel = node.ints_attribute("kernel_shape");
  for (uint32_t i = 0; i < kernel.size() && i + 2 < static_cast<uint32_t>(rank); ++i) {
    const int64_t extent = node.input(1).extent(i + 2);
    if (extent >= 0 && extent != kernel[i])
      return sdk::no(BP_REASON_ATTRIBUTE, "kernel_shape has " + std::to_string(kernel[i]) +
                                              " where the weights have extent " + std::to_string(extent));
  }
  return supports_window(node);
}

constexpr Row kRows[] = {
    {"", "Conv", 1, kFloats, {2, 3}, supports_conv, emit_conv},
};

}  // namespace

Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias) {
  const Window w{sdk::window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()})};
  const Tensor y = e.scratch(x.dtype, w.output_shape(x.shape[0], k.shape[0]));
  emit_windows(e, w, x, k, bias, y);
  return y;
}

std::span<const Row> conv_rows() {
  return kRows;
}

}  // namespace backplane::gpu
