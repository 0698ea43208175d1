// SPDX-License-Identifier: Apache-2.0
// Conv. In float it goes to tiles and oneDNN (kernels/conv/blocked_conv.h, kernels/conv/onednn_conv.h); other types
// take the definition.
#include "kernels/conv/conv.h"

#include <utility>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/conv/blocked_conv.h"
#include "kernels/conv/channel_order.h"
#include "kernels/post_op/activation.h"
#include "runtime/threads.h"

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

class Conv final : public Kernel {
 public:
  explicit Conv(const Node& node) : attributes_(node), groups_(node.attr("group", int64_t{1})) {}

  Plan plan(Tensors inputs) const override {
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
    ConvPlan conv{*size, *w, ops, read_groups_};
    const bool fast = inputs[0].dtype == BP_DTYPE_FLOAT && can_be_blocked(inputs[0].shape) && can_be_blocked(shape) &&
                      !reference_only();
    if (fast) {
      if (Plan plan = plan_blocked_conv(conv, own, packed_); plan.step) return plan;
    }
    if (read_groups_ > 1) order_.spread(read_groups_, own, conv.size);
    if (fast) {
      if (Plan plan = plan_onednn_conv(conv, own, packed_); plan.step) return plan;
    }
    // Weights and bias that are not those of the node.
    std::vector<std::pair<size_t, Tensor>> changed;
    for (size_t i = 1; i < own.size() && i < 3; ++i) {
      if (own[i].data != inputs[i].data) changed.emplace_back(i, own[i]);
    }
    return make_plan({shape}, [s = conv.size, w = *w, ops, changed](Tensors in, Tensors out) {
      std::vector<Tensor> operands(in.begin(), in.end());
      for (const auto& [slot, tensor] : changed) operands[slot] = tensor;
      dispatch<Floats>(in[0].dtype, [&](auto tag) { run_direct<typename decltype(tag)::type>(s, w, operands, out); });
      apply_post_ops(ops, out[0].as<float>(), s.batch, s.out_channels, w.out_size(), in.back().as<float>());
    });
  }

  bool packs(size_t input) const override { return input == 1; }

  // Affine operations become part of the weights, an addition and activations are done by oneDNN in this order.
  bool append(PostOp op) override {
    const bool fits = keeps_order(post_ops_, op);
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

  bool skip_shuffle(int64_t groups, bool through) override {
    (through ? passed_groups_ : read_groups_) = groups;
    return true;
  }

 private:
  WindowAttributes attributes_;
  int64_t groups_;
  std::vector<PostOp> post_ops_;
  int64_t passed_groups_ = 1, read_groups_ = 1;  // of the shuffle that its input has not had: see skip_shuffle
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
      return no(BP_REASON_ATTRIBUTE,
                "kernel_shape says " + std::to_string(kernel[i]) + " where the weights have " + std::to_string(extent));
  }
  return check_window(node);
}

constexpr Row kRows[] = {
    {"", "Conv", 1, supports, create_conv},
};

}  // namespace

std::unique_ptr<Kernel> create_conv(const Node& node) {
  return std::make_unique<Conv>(node);
}

[[gnu::cold]] std::span<const Row> conv_rows() {
  return kRows;
}

}  // namespace backplane::cpu
