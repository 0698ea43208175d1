// SPDX-License-Identifier: Apache-2.0
// Conv: the list of its implementations, and the reference.
#include "kernels/conv/conv.h"

#include <utility>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/operations.h"
#include "kernels/common/support.h"
#include "kernels/conv/blocked_conv.h"
#include "kernels/conv/channel_order.h"
#include "kernels/conv/depthwise_conv.h"
#include "kernels/conv/winograd_conv.h"
#include "kernels/post_op/activation.h"
#include "runtime/implementations.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

template <class T>
void run_direct(const ConvSize& size, const Window& w, Tensors in, Tensors out) {
  using C = compute_t<T>;
  const T* bias = at(in, 2).present() ? in[2].as<T>() : nullptr;
  direct_conv<C>(
      size, w, [x = in[0].as<T>()](int64_t i) { return static_cast<C>(x[i]); },
      [k = in[1].as<T>()](int64_t, int64_t i) { return static_cast<C>(k[i]); },
      [=, y = out[0].as<T>()](int64_t channel, int64_t i, C sum) {
        y[i] = static_cast<T>(bias == nullptr ? sum : sum + static_cast<C>(bias[channel]));
      });
}

// Input to the implementations in kConvs: a Conv for one set of extents.
struct ConvProblem {
  ConvPlan conv;
  Shape shape;  // result shape
  std::vector<Tensor> inputs;
  Tensors given;  // the node's inputs; `inputs` are the same, but may have reordered weights and bias
  ChannelOrder& order;
  PackedWeights& packed;
  std::shared_ptr<OnednnConvDescription> onednn;

  // Expands the groups of a shuffled convolution into one, for implementations that do not support shuffled channels.
  void spread() {
    if (conv.shuffled_groups > 1) order.spread(conv.shuffled_groups, inputs, conv.size);
    conv.shuffled_groups = 1;
  }
};

const char* refuse_blocks(const ConvProblem& p) {
  if (p.inputs[0].dtype != BP_DTYPE_FLOAT) return "it is not in fp32";
  return can_be_blocked(p.inputs[0].shape) && can_be_blocked(p.shape) ? nullptr : "its tensors cannot be blocked";
}

const char* refuse_winograd(const PlanContext& context, ConvProblem& p) {
  if (const char* why = refuse_blocks(p)) return why;
  if (p.conv.shuffled_groups > 1) return "its input channels are shuffled";
  if (!prefers_winograd(context, p.conv)) return "its transforms would take longer than they save";
  p.onednn = describe_onednn_conv(context, p.conv, p.inputs, true);
  return p.onednn == nullptr ? "oneDNN has no Winograd implementation for it" : nullptr;
}

const char* refuse_winograd_8(const PlanContext&, ConvProblem& p) {
  const char* why = refuse_blocks(p);
  return why != nullptr ? why : refuse_winograd_conv(p.conv, p.inputs);
}

const char* refuse_tiled(const PlanContext&, ConvProblem& p) {
  const char* why = refuse_blocks(p);
  return why != nullptr ? why : refuse_blocked_conv(p.conv, p.inputs);
}

const char* refuse_depthwise(const PlanContext& context, ConvProblem& p) {
  if (const char* why = refuse_blocks(p)) return why;
  if (const char* why = refuse_depthwise_conv(p.conv, p.inputs)) return why;
  if (p.conv.window.kernel[1] == 1) return nullptr;
  p.onednn = describe_onednn_conv(context, p.conv, p.inputs, false);
  return p.onednn == nullptr || is_by_products(*p.onednn) ? nullptr : "oneDNN has a faster kernel for it";
}

const char* refuse_onednn(const PlanContext& context, ConvProblem& p) {
  if (const char* why = refuse_blocks(p)) return why;
  p.spread();
  if (p.onednn == nullptr) p.onednn = describe_onednn_conv(context, p.conv, p.inputs, false);
  return p.onednn == nullptr ? "oneDNN has no fast implementation" : nullptr;
}

Plan plan_winograd_8(const PlanContext& context, ConvProblem& p) {
  return plan_winograd_conv(context, p.conv, p.inputs, p.packed);
}

Plan plan_tiled(const PlanContext& context, ConvProblem& p) {
  return plan_blocked_conv(context, p.conv, p.inputs, p.packed);
}

Plan plan_depthwise(const PlanContext& context, ConvProblem& p) {
  return plan_depthwise_conv(context, p.conv, p.inputs, p.packed);
}

Plan plan_onednn(const PlanContext&, ConvProblem& p) {
  return plan_onednn_conv(*p.onednn, p.conv, p.inputs, p.packed);
}

Plan plan_direct(const PlanContext&, ConvProblem& p) {
  p.spread();
  // The weights and the bias, if their channels were reordered.
  std::vector<std::pair<size_t, Tensor>> changed;
  for (size_t i = 1; i < p.inputs.size() && i < 3; ++i) {
    if (p.inputs[i].data != p.given[i].data) changed.emplace_back(i, p.inputs[i]);
  }
  const std::vector<PostOp> ops(p.conv.post_ops.begin(), p.conv.post_ops.end());
  return make_plan({p.shape}, [s = p.conv.size, w = p.conv.window, ops, changed](Tensors in, Tensors out) {
    std::vector<Tensor> operands(in.begin(), in.end());
    for (const auto& [slot, tensor] : changed) operands[slot] = tensor;
    dispatch<Floats>(in[0].dtype, [&](auto tag) { run_direct<typename decltype(tag)::type>(s, w, operands, out); });
    apply_post_ops(ops, out[0].as<float>(), s.batch, s.out_channels, w.out_size(), in.back().as<float>());
  });
}

constexpr std::array kConvs = {
    Implementation<ConvProblem>{"winograd", refuse_winograd, plan_onednn},
    Implementation<ConvProblem>{"winograd_8", refuse_winograd_8, plan_winograd_8},
    Implementation<ConvProblem>{"tiled", refuse_tiled, plan_tiled},
    Implementation<ConvProblem>{"depthwise", refuse_depthwise, plan_depthwise},
    Implementation<ConvProblem>{"onednn", refuse_onednn, plan_onednn},
    Implementation<ConvProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("conv", kConvs);
}

class Conv final : public Kernel {
 public:
  explicit Conv(const Node& node) : attributes_(node), groups_(node.attr("group", int64_t{1})) {}

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    std::string error;
    std::optional<ConvSize> size = conv_size(inputs[0].shape, inputs[1].shape, groups_, &error);
    if (!size) return fail(error);
    std::optional<Window> w = make_window(attributes_, inputs[0].shape, inputs[1].shape.span().subspan(2), &error);
    if (!w) return fail(error);
    if (Tensor bias = at(inputs, 2); bias.present() && bias.shape.elements() != size->out_channels) {
      return fail("the bias " + to_string(bias.shape) + " does not fit " + std::to_string(size->out_channels) +
                  " channels");
    }
    Shape shape = w->output_shape(size->batch, size->out_channels);
    std::vector<Tensor> own(inputs.begin(), inputs.end());
    std::vector<PostOp> ops = post_ops_;
    if (passed_groups_ > 1) order_.pass(passed_groups_, own, ops);
    ConvProblem problem{{*size, *w, ops, read_groups_}, shape, std::move(own), inputs, order_, packed_, nullptr};
    return plan_best(context, "conv", kConvs, problem);
  }

  bool packs(size_t input) const override { return input == 1; }

  // Accepts, in this order: affine post-operations, which become part of the weights and the bias; an addition;
  // activations.
  bool append(PostOp&& op) override {
    const bool fits = keeps_order(post_ops_, op);
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

  void skip_shuffle(int64_t groups, bool through) { (through ? passed_groups_ : read_groups_) = groups; }

 private:
  WindowAttributes attributes_;
  int64_t groups_;
  std::vector<PostOp> post_ops_;
  int64_t passed_groups_ = 1, read_groups_ = 1;  // groups of an absorbed channel shuffle; 1: none
  mutable ChannelOrder order_;
  mutable PackedWeights packed_;
};

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  if (Verdict v = same_type(node, 0, 1); !v) return v;
  if (node.has_input(2)) {
    if (Verdict v = same_type(node, 0, 2); !v) return v;
  }
  const std::vector<int64_t> kernel = node.ints("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t extent = node.input_extent(1, static_cast<int>(i) + 2);
    if (extent >= 0 && extent != kernel[i])
      return no(BP_REASON_ATTRIBUTE, "kernel_shape has " + std::to_string(kernel[i]) +
                                         ", but the weights have extent " + std::to_string(extent));
  }
  return check_window(node);
}

}  // namespace

std::unique_ptr<Kernel> create_conv(const Node& node) {
  return std::make_unique<Conv>(node);
}

bool skip_shuffle(Kernel& kernel, int64_t groups, bool through) {
  auto* conv = dynamic_cast<Conv*>(&kernel);
  if (conv != nullptr) conv->skip_shuffle(groups, through);
  return conv != nullptr;
}

[[gnu::cold]] std::span<const Row> conv_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Conv", 1, supports, create_conv}.in_fp32(0b010).costing(conv_operations<1>).choosing(implementations),
  };
  return kRows;
}

}  // namespace backplane::cpu
