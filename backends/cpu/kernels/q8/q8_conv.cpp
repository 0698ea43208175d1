// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/q8/q8_amx.h"
#include "kernels/q8/q8_depthwise.h"
#include "kernels/q8/q8_integer.h"
#include "kernels/q8/q8_onednn.h"
#include "kernels/q8/q8_pointwise.h"
#include "kernels/quantized/quantize.h"
#include "runtime/implementations.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

using dnnl::memory;
using Primitive = dnnl::convolution_forward;

// Minimum multiply-adds of a task. Depthwise convolutions need fewer, because their multiply-adds are slower.
constexpr int64_t kTaskWork = int64_t{1} << 19;
constexpr int64_t kDepthwiseTaskWork = int64_t{1} << 16;
constexpr int64_t kChannelBlock = 64;

struct Problem {
  ConvSize size;
  Window window;
  Shape shape;              // result shape
  int64_t row = 0;          // weights per output channel
  bool transposed = false;  // weight i of channel o is at i · out_channels + o, otherwise at o · row + i
};

// Converts sums to quantization steps of the result, by a scale and a shift for each output channel. `bias` is the
// shift in steps of the sums, where it is often an integer.
struct Steps {
  std::vector<float> scale, shift, bias;
  bool divides = true;  // for all channels, scale is a normal number and bias = shift / scale is finite
  std::optional<Activation> activation;

  Steps(const Q8Product& p, int64_t channels) : activation(p.activation) {
    const double step = static_cast<double>(p.result.scale);
    for (std::vector<float>* each : {&scale, &shift, &bias}) each->reserve(static_cast<size_t>(channels));
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const double weight = static_cast<double>(p.weight_scales[p.weight_scales.size() == 1 ? 0 : c]);
      const double sum_step = static_cast<double>(p.source.scale) * weight;
      const double shifted = p.bias.empty() ? 0.0 : p.bias[c];
      scale.push_back(static_cast<float>(sum_step / step));
      shift.push_back(static_cast<float>(shifted / step));
      bias.push_back(static_cast<float>(shifted / sum_step));
      divides = divides && std::isnormal(scale.back()) && std::isfinite(bias.back());
    }
    if (activation && activation->function == Activation::kClip) {  // rounded before the zero point is added
      activation->alpha = std::nearbyint(activation->alpha / p.result.scale);
      activation->beta = std::nearbyint(activation->beta / p.result.scale);
    }
  }
};

// A part of an image's result: some rows or some channels. A row is one position along the first spatial dimension; in
// 1×1 convolutions without stride or padding, each position is a row.
struct Part {
  int64_t first_channel, channels;
  int64_t source_at, result_at;           // bytes from the start of the image
  Primitive::primitive_desc description;  // cleared once the weights are packed
  Primitive primitive;
  PrimitiveLayouts layouts;
  int64_t weights_at = 0;
};

bool is_flat(const Window& w) {
  return w.kernel_size() == 1 && w.stride == Spatial{1, 1, 1} && w.in == w.out;
}

class Q8ConvStep final : public Step {
 public:
  // Packs the weights if oneDNN has a fast implementation for every part. described() returns whether it has.
  Q8ConvStep(const PlanContext& context, const Problem& problem, const Q8Product& product, const Steps& steps,
             Tensors inputs, PackedWeights& packed)
      : size_(problem.size), threads_(context.threads), bias_(steps.bias) {
    const Window& w = problem.window;
    source_image_ = size_.in_channels * w.in_size();
    result_image_ = size_.out_channels * w.out_size();
    positions_ = w.out_size();
    described_ = cut(w, product, steps);
    if (!described_) return;
    PackedWeights::Layouts layouts;
    for (Part& part : parts_) {
      const auto same = std::ranges::find_if(parts_, [&](const Part& other) {
        return other.first_channel == part.first_channel &&
               other.description.weights_desc() == part.description.weights_desc();
      });
      if (&*same != &part) {
        part.weights_at = same->weights_at;
        continue;
      }
      part.weights_at = weight_bytes_;
      layouts.push_back(part.description.weights_desc());
      weight_bytes_ += bytes_of(layouts.back());
    }
    pack_ = packed.get(inputs[1], layouts, [&] {
      std::shared_ptr<std::byte> pack(allocate_pages(weight_bytes_));
      int64_t done = -1;
      for (const Part& part : parts_) {
        if (part.weights_at <= done) continue;
        done = part.weights_at;
        pack_weights(problem, product, inputs[1], part, pack.get() + part.weights_at);
      }
      return pack;
    });
    for (Part& part : parts_) part.description = {};
  }

  bool described() const { return described_; }
  int64_t scratch_bytes() const override { return threads_ * (scratchpad_bytes_ + narrow_bytes_); }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const auto count = static_cast<int64_t>(parts_.size());
    parallel(size_.batch * count, 1, [&](int64_t begin, int64_t end) {
      SingleThreaded single;
      std::byte* scratchpad = static_cast<std::byte*>(scratch) + thread_index() * (scratchpad_bytes_ + narrow_bytes_);
      for (int64_t task = begin; task < end; ++task) {
        const Part& part = parts_[static_cast<size_t>(task % count)];
        const int64_t image = task / count;
        uint8_t* to = out[0].as<uint8_t>() + image * result_image_ + part.result_at;
        void* target = narrow_bytes_ == 0 ? static_cast<void*>(to) : scratchpad + scratchpad_bytes_;
        Execution execution;
        execution.add(DNNL_ARG_SRC, part.layouts.source, in[0].as<uint8_t>() + image * source_image_ + part.source_at);
        execution.add(DNNL_ARG_WEIGHTS, part.layouts.weights, pack_.get() + part.weights_at);
        execution.add(DNNL_ARG_BIAS, part.layouts.bias, bias_.data() + part.first_channel);
        execution.add(DNNL_ARG_DST, part.layouts.result, target);
        execution.add(DNNL_ARG_SCRATCHPAD, part.layouts.scratchpad, scratchpad);
        execution.run(part.primitive);
        for (int64_t p = 0; narrow_bytes_ != 0 && p < positions_; ++p)
          std::memcpy(to + p * size_.out_channels, static_cast<uint8_t*>(target) + p * part.channels,
                      static_cast<size_t>(part.channels));
      }
    });
    return std::nullopt;
  }

 private:
  // Cuts an image into at most one part per thread. Parts consist of rows if these divide almost evenly or there are
  // too few channels, otherwise of channels. The results of a part with some channels are computed contiguously, then
  // copied to their positions among the other channels.
  bool cut(const Window& w, const Q8Product& product, const Steps& steps) {
    const bool flat = is_flat(w);
    const auto first_dim = static_cast<size_t>(kSpatial - w.dims);
    const int64_t rows = flat ? w.out_size() : w.out[first_dim];
    const int64_t work = result_image_ * (size_.in_channels / size_.groups) * w.kernel_size();
    const int64_t task_work = size_.groups == size_.in_channels ? kDepthwiseTaskWork : kTaskWork;
    int64_t count = size_.batch >= threads_ ? 1 : std::min<int64_t>(threads_, std::max<int64_t>(1, work / task_work));
    const int64_t blocks = size_.out_channels / kChannelBlock;
    const int64_t max_rows = (rows + count - 1) / count;
    const bool uneven = 10 * max_rows * count > 11 * rows;
    if (count > 1 && size_.groups == 1 && uneven && blocks >= count) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t first = i * blocks / count * kChannelBlock;
        const int64_t last = i + 1 == count ? size_.out_channels : (i + 1) * blocks / count * kChannelBlock;
        if (!add_part(w, product, steps, 0, rows, first, last - first)) return false;
        narrow_bytes_ = std::max(narrow_bytes_, align_up((last - first) * positions_));
      }
      return true;
    }
    count = std::min(count, rows);
    for (int64_t i = 0; i < count; ++i) {
      if (!add_part(w, product, steps, i * rows / count, (i + 1) * rows / count, 0, size_.out_channels)) return false;
    }
    return true;
  }

  bool add_part(const Window& w, const Q8Product& product, const Steps& steps, int64_t first_row, int64_t last_row,
                int64_t channel, int64_t channels) {
    Part part{channel, channels, 0, first_row * size_.out_channels, {}, {}, {}, 0};
    Q8Convolution c;
    memory::dims in, out, kernel;
    if (is_flat(w)) {
      in = out = {1, last_row - first_row};
      kernel = c.strides = {1, 1};
      c.dilations = c.begin = c.end = {0, 0};
      part.source_at = first_row * size_.in_channels;
    } else {
      for (auto d = static_cast<size_t>(kSpatial - w.dims); d < kSpatial; ++d) {
        const bool is_cut = in.empty();
        const int64_t first = is_cut ? first_row : 0, last = is_cut ? last_row : w.out[d];
        const int64_t start = first * w.stride[d] - w.begin[d];
        const int64_t stop = (last - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1 - w.begin[d];
        const int64_t from = is_cut ? std::clamp<int64_t>(start, 0, w.in[d]) : 0;
        const int64_t to = is_cut ? std::clamp<int64_t>(stop, from, w.in[d]) : w.in[d];
        if (from == to) return false;  // the windows read only padding
        if (is_cut) part.source_at = from * size_.in_channels * (w.in_size() / w.in[d]);
        if (is_cut) part.result_at = first * size_.out_channels * (w.out_size() / w.out[d]);
        in.push_back(to - from);
        out.push_back(last - first);
        kernel.push_back(w.kernel[d]);
        c.strides.push_back(w.stride[d]);
        c.dilations.push_back(w.dilation[d] - 1);
        c.begin.push_back(from - start);
        c.end.push_back(stop - to);
      }
    }
    part.result_at += channel;
    const auto byte = [](const Quantization& q) {
      return q.is_signed() ? memory::data_type::s8 : memory::data_type::u8;
    };
    using Tag = memory::format_tag;
    const Tag last = in.size() == 1 ? Tag::nwc : in.size() == 2 ? Tag::nhwc : Tag::ndhwc;
    c.source = {extended({1, size_.in_channels}, in), byte(product.source), last};
    c.result = {extended({1, channels}, out), byte(product.result), last};
    c.weights = {weight_dims(channels, kernel), memory::data_type::s8, Tag::any};
    c.source_zero = product.source.zero;
    c.result_zero = product.result.zero;
    c.scale.assign(steps.scale.begin() + channel, steps.scale.begin() + channel + channels);
    c.activation = steps.activation;
    const Primitive::primitive_desc d = describe_convolution(c);
    if (!d || !is_fast(d.impl_info_str())) return false;
    part.primitive = Primitive(d);
    part.layouts = PrimitiveLayouts(part.primitive);
    part.description = d;
    scratchpad_bytes_ = std::max(scratchpad_bytes_, bytes_of(d.scratchpad_desc()));
    parts_.push_back(std::move(part));
    return true;
  }

  static memory::dims extended(memory::dims dims, const memory::dims& spatial) {
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    return dims;
  }
  memory::dims weight_dims(int64_t channels, const memory::dims& kernel) const {
    const int64_t in_group = size_.in_channels / size_.groups;
    return size_.groups == 1 ? extended({channels, in_group}, kernel)
                             : extended({size_.groups, channels / size_.groups, in_group}, kernel);
  }

  void pack_weights(const Problem& problem, const Q8Product& product, const Tensor& weights, const Part& part,
                    std::byte* pack) const {
    const Block scratch = allocate_pages(part.channels * problem.row);
    auto* plain = reinterpret_cast<int8_t*>(scratch.get());
    for (int64_t c = 0; c < part.channels; ++c) {
      const int64_t channel = part.first_channel + c;
      for (int64_t i = 0; i < problem.row; ++i) {
        const int64_t at = problem.transposed ? i * size_.out_channels + channel : channel * problem.row + i;
        const int32_t weight = q8_at(weights.data, weights.dtype == BP_DTYPE_INT8, at) - product.weight_zero;
        plain[c * problem.row + i] = static_cast<int8_t>(weight);
      }
    }
    using Tag = memory::format_tag;
    constexpr Tag kDense[] = {Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
    const memory::desc layout = part.description.weights_desc();
    const memory::dims dims = layout.dims();
    onednn_reorder({dims, memory::data_type::s8, kDense[dims.size() - 3]}, plain, layout, pack);
  }

  ConvSize size_;
  int64_t threads_;
  std::vector<float> bias_;
  bool described_ = false;
  std::vector<Part> parts_;
  PackedWeights::Pack pack_;
  int64_t source_image_ = 0, result_image_ = 0, positions_ = 0;
  int64_t weight_bytes_ = 0, scratchpad_bytes_ = 0, narrow_bytes_ = 0;
};

Q8Work work_of(const Problem& problem, const Q8Product& product, const Steps& steps) {
  return {problem.size,        problem.window, problem.transposed, product.source,   product.result,
          product.weight_zero, steps.bias,     steps.scale,        steps.activation, product.sum};
}

// Returns the quantized value that is `steps`, a whole number, above the zero point, saturated.
uint8_t quantized_of(float steps, const Quantization& to) {
  const float quantized = steps + static_cast<float>(to.zero);
  return to.is_signed() ? static_cast<uint8_t>(saturate<int8_t>(quantized)) : saturate<uint8_t>(quantized);
}

uint8_t added(const Q8Sum& sum, uint8_t a, uint8_t b) {
  const auto number = [](const Quantization& q, uint8_t quantized) {
    return static_cast<float>(q8_at(&quantized, q.is_signed(), 0) - q.zero) * q.scale;
  };
  const float x = number(sum.a, a) + number(sum.b, b);
  return quantized_of(std::nearbyint((sum.rectifies ? std::max(x, 0.0f) : x) / sum.result.scale), sum.result);
}

// The reference: sums each result directly, on dense tensors.
Plan plan_definition(const Problem& problem, const Q8Product& product) {
  return make_plan({problem.shape}, [problem, product, steps = Steps(product, problem.size.out_channels)](Tensors in,
                                                                                                          Tensors out) {
    const bool x_signed = product.source.is_signed(), w_signed = in[1].dtype == BP_DTYPE_INT8;
    const Quantization& to = product.result;
    direct_conv<int32_t>(
        problem.size, problem.window, [&](int64_t i) { return q8_at(in[0].data, x_signed, i) - product.source.zero; },
        [&](int64_t channel, int64_t i) {
          const int64_t at = problem.transposed ? (i - channel * problem.row) * problem.size.out_channels + channel : i;
          return q8_at(in[1].data, w_signed, at) - product.weight_zero;
        },
        [&](int64_t channel, int64_t i, int32_t sum) {
          const auto c = static_cast<size_t>(channel);
          float value = static_cast<float>(sum) * steps.scale[c] + steps.shift[c];
          if (steps.activation) {
            const bool relu = steps.activation->function == Activation::kRelu;
            value = std::max(value, relu ? 0.0f : steps.activation->alpha);
            if (!relu) value = std::min(value, steps.activation->beta);
          }
          uint8_t quantized = quantized_of(std::nearbyint(value), to);
          if (product.sum) quantized = added(*product.sum, quantized, in[2].as<uint8_t>()[i]);
          out[0].as<uint8_t>()[i] = quantized;
        });
  });
}

// Input to the implementations in kQ8: a convolution or product for one set of extents.
struct Q8Problem {
  const Problem& problem;
  const Problem& definition;  // the same, but for tensors with channels before positions
  const Q8Product& product;
  Tensors inputs;
  PackedWeights& packed;
  Steps steps;
  Q8Work work;
  std::unique_ptr<Step> onednn;
};

const char* refuse_steps(const Q8Problem& p) {
  if (p.problem.size.in_channels == 0) return "it has no input channels";
  if (p.problem.shape.elements() == 0) return "its result is empty";
  return p.steps.divides ? nullptr : "a scale or bias is out of range";
}

const char* refuse_depthwise_tiles(const PlanContext&, Q8Problem& p) {
  const char* why = refuse_steps(p);
  return why != nullptr ? why : refuse_depthwise(p.work);
}

const char* refuse_amx_tiles(const PlanContext&, Q8Problem& p) {
  const char* why = refuse_steps(p);
  return why != nullptr ? why : refuse_amx(p.work);
}

const char* refuse_pointwise_tiles(const PlanContext&, Q8Problem& p) {
  const char* why = refuse_steps(p);
  return why != nullptr ? why : refuse_pointwise(p.work);
}

// Without VNNI, oneDNN adds products of two neighboring input channels in 16 bits, which saturates. Returns whether the
// weights are so small that no sum saturates, as they are if quantized to 7 bits for such processors.
bool fit_in_pairs(const Q8Problem& p) {
  const Tensor& weights = p.inputs[1];
  const ConvSize& size = p.problem.size;
  if (p.product.source.is_signed() || size.groups != 1 || weights.data == nullptr) return false;
  const int64_t taps = p.problem.row / size.in_channels;
  const auto magnitude = [&](int64_t channel, int64_t i) {
    const int64_t at = p.problem.transposed ? i * size.out_channels + channel : channel * p.problem.row + i;
    return std::abs(q8_at(weights.data, weights.dtype == BP_DTYPE_INT8, at) - p.product.weight_zero);
  };
  constexpr int32_t kMost = 128;  // 128 · 255 fits in 16 bits
  for (int64_t channel = 0; channel < size.out_channels; ++channel) {
    for (int64_t c = 0; c + 1 < size.in_channels; c += 2) {
      for (int64_t t = 0; t < taps; ++t)
        if (magnitude(channel, c * taps + t) + magnitude(channel, (c + 1) * taps + t) > kMost) return false;
    }
  }
  return true;
}

const char* refuse_onednn(const PlanContext& context, Q8Problem& p) {
  if (const char* why = refuse_steps(p)) return why;
  if (!has_q8_products() && !fit_in_pairs(p)) return "oneDNN's sums of products could saturate without VNNI";
  if (p.work.sum) return "an addition is fused into it";
  SingleThreaded single;
  auto step = std::make_unique<Q8ConvStep>(context, p.problem, p.product, p.steps, p.inputs, p.packed);
  if (!step->described()) return "oneDNN has no fast implementation";
  p.onednn = std::move(step);
  return nullptr;
}

Plan plan_of(std::unique_ptr<Step> step, const Q8Problem& p) {
  Plan plan;
  plan.step = std::move(step);
  plan.shapes = {p.problem.shape};
  plan.packed = 1;
  return plan;
}

Plan plan_depthwise(const PlanContext& context, Q8Problem& p) {
  return plan_of(make_q8_depthwise(context, std::move(p.work), p.inputs, p.packed), p);
}

Plan plan_amx(const PlanContext& context, Q8Problem& p) {
  return plan_of(make_q8_amx(context, std::move(p.work), p.inputs, p.packed), p);
}

Plan plan_pointwise(const PlanContext& context, Q8Problem& p) {
  return plan_of(make_q8_pointwise(context, std::move(p.work), p.inputs, p.packed), p);
}

Plan plan_onednn(const PlanContext&, Q8Problem& p) {
  return plan_of(std::move(p.onednn), p);
}

const char* refuse_integer_products(const PlanContext&, Q8Problem& p) {
  const char* why = refuse_steps(p);
  return why != nullptr ? why : refuse_integer(p.work);
}

Plan plan_integer(const PlanContext& context, Q8Problem& p) {
  return plan_of(make_q8_integer(context, std::move(p.work), p.inputs, p.packed), p);
}

Plan plan_direct(const PlanContext&, Q8Problem& p) {
  return plan_definition(p.definition, p.product);
}

constexpr std::array kQ8 = {
    Implementation<Q8Problem>{"depthwise", refuse_depthwise_tiles, plan_depthwise},
    Implementation<Q8Problem>{"amx", refuse_amx_tiles, plan_amx},
    Implementation<Q8Problem>{"pointwise", refuse_pointwise_tiles, plan_pointwise},
    Implementation<Q8Problem>{"onednn", refuse_onednn, plan_onednn},
    Implementation<Q8Problem>{"integer", refuse_integer_products, plan_integer},
    Implementation<Q8Problem>{"direct", nullptr, plan_direct},
};

// `problem` is for the channels-last tensors of the fast implementations, `definition` for the dense ones of the
// reference.
Plan plan_q8(const PlanContext& context, const Problem& problem, const Problem& definition, const Q8Product& product,
             Tensors inputs, PackedWeights& packed) {
  Q8Problem p{problem, definition, product, inputs, packed, Steps(product, problem.size.out_channels), {}, nullptr};
  p.work = work_of(problem, product, p.steps);
  return plan_best(context, "q8", kQ8, p);
}

class Q8Conv final : public Kernel {
 public:
  Q8Conv(const Node& node, Q8Product product)
      : attributes_(node), groups_(node.attr("group", int64_t{1})), product_(std::move(product)) {}

  bool packs(size_t input) const override { return input == 1; }

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    std::string error;
    const Shape &x = inputs[0].shape, &weights = inputs[1].shape;
    std::optional<ConvSize> size = conv_size(x, weights, groups_, &error);
    if (!size) return fail(error);
    std::optional<Window> w = make_window(attributes_, x, weights.span().subspan(2), &error);
    if (!w) return fail(error);
    const Problem problem{*size, *w, w->output_shape(size->batch, size->out_channels),
                          weights.elements(1, weights.rank()), false};
    if (product_.weight_scales.size() != 1 && static_cast<int64_t>(product_.weight_scales.size()) != weights[0])
      return fail(std::to_string(product_.weight_scales.size()) + " weight scales do not fit " +
                  std::to_string(weights[0]) + " output channels");
    if (!product_.bias.empty() && static_cast<int64_t>(product_.bias.size()) != weights[0])
      return fail("a bias of " + std::to_string(product_.bias.size()) + " elements does not fit " +
                  std::to_string(weights[0]) + " output channels");
    if (product_.sum && !(inputs[2].shape == problem.shape))
      return fail("the tensor to add has shape " + to_string(inputs[2].shape) + ", but the result has shape " +
                  to_string(problem.shape));
    Plan plan = plan_q8(context, problem, problem, product_, inputs, packed_);
    if (plan.packed == 1) {
      plan.input_formats = {Format::kChannelsLast, Format::kDense};
      if (product_.sum) plan.input_formats.push_back(Format::kChannelsLast);
      plan.output_format = Format::kChannelsLast;
    }
    return plan;
  }

 private:
  WindowAttributes attributes_;
  int64_t groups_;
  Q8Product product_;
  mutable PackedWeights packed_;
};

// A matrix product, computed as a pointwise convolution: each row of A is a position.
class Q8MatMul final : public Kernel {
 public:
  Q8MatMul(Q8Product product, bool transposed) : product_(std::move(product)), transposed_(transposed) {}

  bool packs(size_t input) const override { return input == 1; }

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    if (a.rank() < 1 || b.rank() != 2 || a[a.rank() - 1] != b[transposed_ ? 1 : 0])
      return fail("matrices " + to_string(a) + " and " + to_string(b) + " cannot be multiplied");
    const int64_t k = a[a.rank() - 1], n = b[transposed_ ? 0 : 1];
    Problem problem;
    problem.shape = a;
    problem.shape[a.rank() - 1] = n;
    problem.row = k;
    problem.transposed = !transposed_;
    const int64_t rows = a.elements(0, a.rank() - 1);
    problem.size = {1, 1, k, n};
    problem.window.dims = 2;
    problem.window.in[2] = problem.window.out[2] = rows;
    // In the reference, channels come before positions, so each row is an image of one position.
    Problem definition = problem;
    definition.size.batch = rows;
    definition.window.in[2] = definition.window.out[2] = 1;
    return plan_q8(context, problem, definition, product_, inputs, packed_);
  }

 private:
  Q8Product product_;
  bool transposed_;
  mutable PackedWeights packed_;
};

}  // namespace

bool takes_sum(const Node& conv, const Q8Product& product, const Shape& weights) {
  const WindowAttributes attributes(conv);
  const bool pads = std::ranges::any_of(attributes.pads, [](int64_t pad) { return pad != 0; });
  if (weights.rank() < 3 || weights.elements(2, weights.rank()) != 1 || pads ||
      (attributes.auto_pad != "NOTSET" && attributes.auto_pad != "VALID"))
    return false;
  Problem problem{};
  problem.size = {1, conv.attr("group", int64_t{1}), weights[1], weights[0]};
  const Steps steps(product, weights[0]);
  const Q8Work work = work_of(problem, product, steps);
  return steps.divides &&
         (refuse_pointwise(work) == nullptr || (!has_q8_products() && refuse_integer(work) == nullptr));
}

bool has_fast_q8_conv(const Node& conv, const Shape& weights) {
  if (has_q8_products()) return true;
  const int64_t groups = conv.attr("group", int64_t{1});
  const bool is_depthwise = groups >= 32 && weights.rank() > 2 && weights[1] == 1 && weights[0] == groups;
  return has_q8_integer() && (groups == 1 || is_depthwise);
}

bool has_fast_q8_matmul() {
  return has_q8_products() || has_q8_integer();
}

std::unique_ptr<Kernel> make_q8_conv(const Node& conv, Q8Product product) {
  return std::make_unique<Q8Conv>(conv, std::move(product));
}

std::unique_ptr<Kernel> make_q8_matmul(Q8Product product, bool transposed) {
  return std::make_unique<Q8MatMul>(std::move(product), transposed);
}

ImplementationNames q8_implementations() {
  return names_of("q8", kQ8);
}

}  // namespace backplane::cpu
