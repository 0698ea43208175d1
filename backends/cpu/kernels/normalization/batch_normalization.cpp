// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) · scale + bias for each channel. In training mode, mean
// and variance are computed from the batch, and their running averages are outputs.
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/post_op/activation.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

struct Normalization {
  double epsilon;
  double momentum;
  bool training;
  int64_t batch = 0, channels = 0, inner = 0;
};

template <class T>
void normalize(const Normalization& b, const T* x, T* y, int64_t channel, double factor, double shift) {
  using C = compute_t<T>;
  C f = static_cast<C>(factor);
  C s = static_cast<C>(shift);
  for (int64_t n = 0; n < b.batch && b.inner > 0; ++n) {
    int64_t first = (n * b.channels + channel) * b.inner;
    for (int64_t i = first; i < first + b.inner; ++i) y[i] = static_cast<T>(static_cast<C>(x[i]) * f + s);
  }
}

// Returns the mean and population variance of a channel, over batch and positions.
template <class T>
std::pair<double, double> moments(const Normalization& b, const T* x, int64_t channel) {
  double sum = 0;
  double squares = 0;
  auto each = [&](auto&& f) {
    for (int64_t n = 0; n < b.batch; ++n) {
      int64_t first = (n * b.channels + channel) * b.inner;
      for (int64_t i = first; i < first + b.inner; ++i) f(static_cast<double>(static_cast<compute_t<T>>(x[i])));
    }
  };
  if (b.inner == 0) return {std::nan(""), std::nan("")};
  double count = static_cast<double>(b.batch * b.inner);
  each([&](double v) { sum += v; });
  double mean = sum / count;
  each([&](double v) { squares += (v - mean) * (v - mean); });
  return {mean, squares / count};
}

double read(const Tensor& tensor, int64_t i) {
  return dispatch<Floats>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(static_cast<compute_t<T>>(tensor.as<T>()[i]));
  });
}

void store(const Tensor& tensor, int64_t i, double value) {
  dispatch<Floats>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    tensor.as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(value));
  });
}

void run(const Normalization& b, Tensors in, Tensors out) {
  dispatch<Floats>(in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = in[0].as<T>();
    parallel(b.channels, 1 + kCheapGrain / (1 + b.batch * b.inner), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double mean = read(in[3], c);
        double variance = read(in[4], c);
        if (b.training) {
          auto [batch_mean, batch_variance] = moments(b, x, c);
          if (Tensor running = at(out, 1); running.present())
            store(running, c, mean * b.momentum + batch_mean * (1 - b.momentum));
          if (Tensor running = at(out, 2); running.present())
            store(running, c, variance * b.momentum + batch_variance * (1 - b.momentum));
          mean = batch_mean;
          variance = batch_variance;
        }
        double factor = read(in[1], c) / std::sqrt(variance + b.epsilon);
        normalize(b, x, out[0].as<T>(), c, factor, read(in[2], c) - mean * factor);
      }
    });
  });
}

Plan plan_normalization(Normalization b, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  if (x.rank() < 1) return fail("the input is a scalar, but must have at least one dimension");
  b.batch = x[0];
  b.channels = x.rank() > 1 ? x[1] : 1;
  b.inner = x.rank() > 2 ? x.elements(2, x.rank()) : 1;
  for (size_t i = 1; i < 5; ++i) {
    if (inputs[i].shape.elements() != b.channels) {
      return fail("input " + std::to_string(i) + " has extents " + to_string(inputs[i].shape) + ", which do not fit " +
                  std::to_string(b.channels) + " channels");
    }
  }
  Shape channels{b.channels};
  return make_plan({x, channels, channels}, [b](Tensors in, Tensors out) { run(b, in, out); }, {.inplace = 0});
}

// Plans inference on floats with known parameters: a multiply-add per element, then the activations. A row has
// the positions of one channel, or of one block of channels.
Plan plan_known(const Normalization& b, std::span<const PostOp> post_ops, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  const int64_t lanes = inputs[0].format == Format::kBlocked ? channel_block() : 1;
  const int64_t channels = x[1];
  const int64_t rows = (channels + lanes - 1) / lanes;
  std::vector<float> scale(static_cast<size_t>(rows * lanes)), shift(scale.size());
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    double factor = read(inputs[1], c) / std::sqrt(read(inputs[4], c) + b.epsilon);
    scale[i] = static_cast<float>(factor);
    shift[i] = static_cast<float>(read(inputs[2], c) - read(inputs[3], c) * factor);
    for (const PostOp& op : post_ops) {
      if (op.kind != PostOp::kAffine) continue;
      scale[i] *= op.scale[i];
      shift[i] = shift[i] * op.scale[i] + op.shift[i];
    }
  }
  std::vector<Activation> activations;
  for (const PostOp& op : post_ops) {
    if (op.kind == PostOp::kActivation) activations.push_back(op.activation);
  }
  const int64_t positions = x.elements(2, x.rank());
  Plan plan = make_plan({x},
                        [=, batch = x[0]](Tensors in, Tensors out) {
                          // Strips are small enough to stay in the L1 cache until the activations are applied.
                          constexpr int64_t kStrip = 4096;
                          const int64_t strip = std::max<int64_t>(1, kStrip / lanes);
                          const int64_t strips = (positions + strip - 1) / strip;
                          const int64_t grain = 1 + kCheapGrain / (1 + std::min(strip, positions) * lanes);
                          parallel(batch * rows * strips, grain, [&](int64_t begin, int64_t end) {
                            for (int64_t task = begin; task < end; ++task) {
                              const int64_t row = task / strips, first = task % strips * strip;
                              const int64_t count = std::min(strip, positions - first);
                              const auto channel = static_cast<size_t>(row % rows * lanes);
                              float* y = out[0].as<float>() + (row * positions + first) * lanes;
                              affine(in[0].as<float>() + (row * positions + first) * lanes, y, count, lanes,
                                     &scale[channel], &shift[channel]);
                              for (const Activation& a : activations) activate(a, y, count * lanes);
                            }
                          });
                          if (lanes > 1) clear_padding(out[0]);
                        },
                        {.inplace = 0});
  keep_format(plan, inputs);
  return plan;
}

class BatchNormalization final : public Kernel {
 public:
  explicit BatchNormalization(const Node& node)
      : parameters_{static_cast<double>(node.attr("epsilon", 1e-5f)), static_cast<double>(node.attr("momentum", 0.9f)),
                    node.attr("training_mode", int64_t{0}) != 0} {}

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    Plan checked = plan_normalization(parameters_, inputs);
    if (!checked.step || context.reference) return checked;
    bool fits = inputs[0].dtype == BP_DTYPE_FLOAT && inputs[0].shape.rank() >= 2 && !parameters_.training;
    for (size_t i = 1; i < 5; ++i) fits = fits && inputs[i].data != nullptr;
    return fits ? plan_known(parameters_, post_ops_, inputs) : std::move(checked);
  }

  bool append(PostOp&& op) override {
    if (parameters_.training || op.kind == PostOp::kAdd) return false;
    if (op.kind == PostOp::kAffine && !post_ops_.empty() && post_ops_.back().kind == PostOp::kActivation) return false;
    post_ops_.push_back(std::move(op));
    return true;
  }

 private:
  Normalization parameters_;
  std::vector<PostOp> post_ops_;
};

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 5, {kFloatTypes, kFloatTypes, kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  if (node.attr("training_mode", int64_t{0}) == 0 && (node.has_output(1) || node.has_output(2))) {
    return no(BP_REASON_ATTRIBUTE, "running mean and variance are outputs only with training_mode=1");
  }
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return std::make_unique<BatchNormalization>(node);
}

}  // namespace

[[gnu::cold]] std::span<const Row> batch_normalization_rows() {
  static constexpr Row kRows[] = {
      Row{"", "BatchNormalization", 9, supports, create}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
