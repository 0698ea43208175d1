// SPDX-License-Identifier: Apache-2.0
// Conv. The driver's library computes it, or Winograd's method, or a matrix product whose columns are the windows.
// These columns are never stored: the input is split into phases, so that the elements that one tap of the window reads
// are contiguous (kernels/polyphase.cl), and each line of the matrix is read from the first element of its tap.
#include "ops/conv.h"

#include <iterator>

#include "ops/gemm.h"
#include "ops/polyphase.h"
#include "ops/table.h"
#include "ops/winograd.h"

namespace backplane::gpu {
namespace {

// y [N, maps, ...] is x [N, C, ...] convolved with weights k [maps, C / groups, ...]; `bias` may be empty.
struct Convolution {
  Window window;
  Tensor x, k, bias, y;
  int64_t groups = 1;          // set from the node
  uint32_t compute_types = 0;  // BP_COMPUTE_* in which the convolution may be computed
};

// ---- the driver's library -------------------------------------------------------------------------------------------

ConvolutionProblem problem_of(const Convolution& c) {
  return {.dtype = c.x.dtype,
          .compute_types = c.compute_types,
          .window = c.window,
          .batch = c.x.shape[0],
          .channels = c.x.shape[1],
          .maps = c.k.shape[0],
          .groups = c.groups,
          .has_bias = static_cast<bool>(c.bias)};
}

std::string library_refusal(Emit& e, const Convolution& c) {
  if (c.x.count() == 0 || c.k.count() == 0) return "its sums are empty";
  if (e.constant(c.x) && e.constant(c.k)) return "it is computed once, from constants";
  return e.libraries().convolutions->refusal(problem_of(c));
}

void emit_in_library(Emit& e, const Convolution& c) {
  LaunchBuilder launch = e.launch(problem_of(c));
  launch.in(c.x).in(c.k).none();
  c.bias ? launch.in(c.bias) : launch.none();
  // The workspace gets its size when the algorithm is chosen.
  launch.out(c.y).out(e.scratch(BP_DTYPE_UINT8, {0}));
  launch.allow_epilogue(c.y, c.k.shape[0], c.window.out_size());
}

// ---- the engine's kernels -------------------------------------------------------------------------------------------

std::string winograd_refusal(Emit& e, const Convolution& c) {
  return refuse_winograd(e, c.window, c.x, c.k);
}

void emit_in_winograd(Emit& e, const Convolution& c) {
  emit_winograd(e, c.window, c.x, c.k, c.bias, c.y);
}

void emit_in_windows(Emit& e, const Convolution& c) {
  const Window& w = c.window;
  Product p{.a = c.k,
            .b = to_polyphase(e, w, c.x),
            .y = c.y,
            .batch = c.x.shape[0] * c.groups,
            .m = c.k.shape[0] / c.groups,
            .n = w.out_size(),
            .k = c.k.shape[1] * w.kernel_size(),
            .a_count = c.groups,
            .b_count = c.x.shape[0] * c.groups,
            .window = w.kernel_size() == 1 ? nullptr : &w};
  if (c.bias) {
    p.bias = c.bias;
    p.bias_of = Product::Bias::kRows;
  }
  emit_product(e, p);
}

// ---- the choice -----------------------------------------------------------------------------------------------------

struct Implementation {
  std::string_view name;
  // Why the convolution is left to the next implementation; empty if this one computes it. NULL for the last one, which
  // computes all convolutions.
  std::string (*refusal)(Emit& e, const Convolution& c);
  void (*emit)(Emit& e, const Convolution& c);
};

// Best first.
constexpr Implementation kImplementations[] = {
    {"library", library_refusal, emit_in_library},
    {"winograd", winograd_refusal, emit_in_winograd},
    {"windows", nullptr, emit_in_windows},
};

const Implementation& implementation_of(Emit& e, const Convolution& c) {
  const bool has_library = e.libraries().convolutions != nullptr;
  std::string refused;
  for (const Implementation& each : kImplementations) {
    if (each.refusal == library_refusal && !has_library) continue;
    const std::string why = each.refusal == nullptr ? "" : each.refusal(e, c);
    if (why.empty()) {
      if (has_library) e.log("convolution=" + std::string(each.name) + (refused.empty() ? "" : " (" + refused + ")"));
      return each;
    }
    refused += (refused.empty() ? "" : "; ") + std::string(each.name) + ": " + why;
  }
  return *std::prev(std::end(kImplementations));
}

void emit_convolution(Emit& e, Convolution c) {
  const int64_t maps = c.k.shape[0];
  c.groups = e.node.int_attribute("group", 1);
  if (c.groups <= 0 || maps % c.groups != 0 || c.x.shape[1] != c.k.shape[1] * c.groups)
    throw sdk::Error(BP_TYPE_MISMATCH, "weights of shape " + to_string(c.k.shape) + " in " + std::to_string(c.groups) +
                                           " groups do not fit input 0 of shape " + to_string(c.x.shape));
  if (c.bias && c.bias.shape != Shape{maps})
    throw sdk::Error(BP_TYPE_MISMATCH, "the bias has shape " + to_string(c.bias.shape) + " instead of " +
                                           to_string(Shape{maps}) + ", one number per channel");
  if (c.y.count() == 0) return;
  implementation_of(e, c).emit(e, c);
}

void emit_conv(Emit& e, std::string_view) {
  const Tensor x = e.input(0), k = e.input(1);
  const Window w{sdk::window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()})};
  const Tensor bias = e.input(2), y = e.output(0, w.output_shape(x.shape[0], k.shape[0]));
  emit_convolution(e, {.window = w, .x = x, .k = k, .bias = bias, .y = y, .compute_types = e.compute_types()});
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

}  // namespace

Tensor emit_integer_conv(Emit& e, const Tensor& x, const Tensor& k, const Tensor& bias) {
  const Window w{sdk::window_of(e.node, x.shape, {k.shape.begin() + 2, k.shape.end()})};
  const Tensor y = e.scratch(x.dtype, w.output_shape(x.shape[0], k.shape[0]));
  emit_convolution(e, {.window = w, .x = x, .k = k, .bias = bias, .y = y});
  return y;
}

std::span<const Row> conv_rows() {
  static constexpr Row kRows[] = {
      {"", "Conv", 1, kFloats, {2, 3}, supports_conv, emit_conv, {}, SummedBy::kConvolutions},
  };
  return kRows;
}

}  // namespace backplane::gpu
