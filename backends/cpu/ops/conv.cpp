// SPDX-License-Identifier: Apache-2.0
// Conv. In float a 1×1 convolution is a matrix product of the planes as they lie; all others go to oneDNN in the layout
// that it likes best, in tasks of one image and a share of the output channels (or groups). Other types take the
// definition.
#include "ops/direct_conv.h"
#include "ops/function_kernel.h"
#include "ops/onednn.h"
#include "ops/onednn_conv.h"
#include "ops/rows.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

bool pointwise(const Window& w) {
  return w.kernel_size() == 1 && w.stride == Spatial{1, 1, 1} && w.begin == Spatial{0, 0, 0} &&
         w.end == Spatial{0, 0, 0};
}

void run_pointwise(const ConvSize& size, int64_t plane, Tensors in, Tensors out) {
  int64_t in_group = size.in_channels / size.groups;
  int64_t out_group = size.out_channels / size.groups;
  const float* bias = at(in, 2).present() ? in[2].as<float>() : nullptr;
  int64_t grain = 1 + (int64_t{1} << 18) / (1 + in_group * out_group * plane);
  parallel(size.batch * size.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t group = i % size.groups;
      sgemm(out_group, plane, in_group, 1, {in[1].as<float>() + group * out_group * in_group, in_group},
            {in[0].as<float>() + i * in_group * plane, plane}, 0, out[0].as<float>() + i * out_group * plane, plane,
            bias == nullptr ? nullptr : bias + group * out_group);
    }
  });
}

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
    if (inputs[0].dtype == BP_DTYPE_FLOAT && shape.elements() != 0 && size->in_channels != 0 && w->in_size() != 0) {
      if (pointwise(*w)) {
        return make_plan(
            {shape}, [s = *size, plane = w->in_size()](Tensors in, Tensors out) { run_pointwise(s, plane, in, out); });
      }
      if (auto step = make_onednn_conv(*size, *w, inputs, packed_)) {
        Plan plan;
        plan.step = std::move(step);
        plan.shapes = {shape};
        return plan;
      }
    }
    return make_plan({shape}, [s = *size, w = *w](Tensors in, Tensors out) {
      dispatch<Floats>(in[0].dtype, [&](auto tag) { run_direct<typename decltype(tag)::type>(s, w, in, out); });
    });
  }

 private:
  WindowAttributes attributes_;
  int64_t groups_;
  mutable PackedWeights packed_;
};

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  if (Verdict v = same_type(node, 0, 1); !v) return v;
  if (node.has_input(2)) {
    if (Verdict v = same_type(node, 0, 2); !v) return v;
  }
  return check_window(node);
}

constexpr Row kRows[] = {
    {"", "Conv", 1, supports, [](const Node& node) -> std::unique_ptr<Kernel> { return std::make_unique<Conv>(node); }},
};

}  // namespace

std::span<const Row> conv_rows() {
  return kRows;
}

}  // namespace backplane::cpu
