// SPDX-License-Identifier: Apache-2.0
// com.microsoft NhwcConv: a Conv of X [N, positions…, C] with weights [M, kernel…, C / group] and the result [N,
// positions…, M]. The implementations are Conv's; X and the result are copied between channels-last order and the
// format that the implementation reads or writes.
#include "kernels/conv/nhwc_conv.h"

#include <array>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/operations.h"
#include "kernels/common/strided_copy.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/conv/conv.h"
#include "kernels/onednn/packed_weights.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kPositions = 32;  // positions per piece of a copy: their channels stay in the cache

// channels_first moves the last extent to index 1; channels_last does the reverse.
Shape channels_first(const Shape& shape) {
  Shape result = shape;
  for (int d = 2; d < shape.rank(); ++d) result[d] = shape[d - 1];
  result[1] = shape[shape.rank() - 1];
  return result;
}
Shape channels_last(const Shape& shape) {
  Shape result = shape;
  for (int d = 2; d < shape.rank(); ++d) result[d - 1] = shape[d];
  result[shape.rank() - 1] = shape[1];
  return result;
}

// Copies a tensor of extents `from` so that its last dimension becomes the second, or the reverse.
void move_channels(const Shape& from, bool to_front, int64_t element_size, const void* source, void* target) {
  const Shape to = to_front ? channels_first(from) : channels_last(from), steps = strides_of(from);
  const Shape strides = to_front ? channels_first(steps) : channels_last(steps);
  StridedCopy(to.span(), strides.span(), 0, element_size)(source, target);
}

// Calls body(image, first, last) in parallel for pieces [first, last) of the positions of each image.
template <class Body>
void for_positions(int64_t images, int64_t positions, int64_t channels, const Body& body) {
  const int64_t pieces = (positions + kPositions - 1) / kPositions;
  parallel(images * pieces, 1 + kCheapGrain / (1 + kPositions * channels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPositions;
      body(i / pieces, first, std::min(positions, first + kPositions));
    }
  });
}

// Copy between floats with their channels last and blocks of channels (Format::kBlocked). `shape` is [N, C, …].
void to_blocks(const Shape& shape, const float* x, float* to) {
  const int64_t block = channel_block(), channels = shape[1], positions = shape.elements(2, shape.rank());
  const int64_t blocks = (channels + block - 1) / block;
  for_positions(shape[0], positions, channels, [&](int64_t n, int64_t first, int64_t last) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t count = std::min(block, channels - b * block);
      const float* from = x + (n * positions + first) * channels + b * block;
      float* y = to + ((n * blocks + b) * positions + first) * block;
      for (int64_t p = first; p < last; ++p, from += channels, y += block) {
        if (count < block) std::fill_n(y + count, block - count, 0.0f);
        std::memcpy(y, from, static_cast<size_t>(count) * sizeof(float));
      }
    }
  });
}
void from_blocks(const Shape& shape, const float* x, float* to) {
  const int64_t block = channel_block(), channels = shape[1], positions = shape.elements(2, shape.rank());
  const int64_t blocks = (channels + block - 1) / block;
  for_positions(shape[0], positions, channels, [&](int64_t n, int64_t first, int64_t last) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t count = std::min(block, channels - b * block);
      const float* from = x + ((n * blocks + b) * positions + first) * block;
      float* y = to + (n * positions + first) * channels + b * block;
      for (int64_t p = first; p < last; ++p, from += block, y += channels)
        std::memcpy(y, from, static_cast<size_t>(count) * sizeof(float));
    }
  });
}

// Runs Conv's step between the copies. The scratch memory holds the copies of operands, then the scratch memory of
// Conv's step.
class NhwcStep final : public Step {
 public:
  // `x`, `w` and `y` are as Conv's step reads and writes them; `w` has data if the weights were known.
  NhwcStep(std::unique_ptr<Step> conv, PackedWeights::Pack weights, Tensor x, Tensor w, Tensor y, ChannelsFirst order)
      : conv_(std::move(conv)), weights_(std::move(weights)), x_(x), w_(w), y_(y), order_(order) {}

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    auto* rest = static_cast<std::byte*>(scratch);
    std::array<Tensor, 4> operands;
    std::copy_n(in.begin(), in.size(), operands.begin());
    Tensor y = out[0];
    operands[1] = w_;
    const int64_t size = bytes_of(x_.dtype, 1);
    if (w_.data == nullptr) {
      operands[1].data = take(rest, w_);
      move_channels(channels_last(w_.shape), true, size, in[1].data, operands[1].data);
    }
    if (!order_.input) {
      operands[0] = x_;
      operands[0].data = take(rest, x_);
      if (x_.format == Format::kBlocked)
        to_blocks(x_.shape, in[0].as<float>(), operands[0].as<float>());
      else
        move_channels(in[0].shape, true, size, in[0].data, operands[0].data);
    }
    if (!order_.output) {
      y = y_;
      y.data = take(rest, y_);
    }
    if (auto error = conv_->run({operands.data(), in.size()}, {&y, 1}, rest)) return error;
    if (order_.output) return std::nullopt;
    if (y.format == Format::kBlocked)
      from_blocks(y.shape, y.as<float>(), out[0].as<float>());
    else
      move_channels(y.shape, false, size, y.data, out[0].data);
    return std::nullopt;
  }

  int64_t scratch_bytes() const override {
    return (w_.data == nullptr ? bytes(w_) : 0) + (order_.input ? 0 : bytes(x_)) + (order_.output ? 0 : bytes(y_)) +
           conv_->scratch_bytes();
  }
  int inplace() const override {
    const int input = conv_->inplace();
    return order_.output && (order_.input || input != 0) ? input : -1;
  }

 private:
  static int64_t bytes(const Tensor& tensor) { return align_up(bytes_of(tensor.dtype, tensor.stored())); }
  static void* take(std::byte*& rest, const Tensor& tensor) {
    void* start = rest;
    rest += bytes(tensor);
    return start;
  }

  std::unique_ptr<Step> conv_;
  PackedWeights::Pack weights_;  // owns the data of w_; null if the weights are not known
  Tensor x_, w_, y_;
  ChannelsFirst order_;
};

class NhwcConv final : public Kernel {
 public:
  explicit NhwcConv(const Node& node) : conv_(create_conv(node)) {}

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    const Shape &given = inputs[0].shape, &kernel = inputs[1].shape;
    if (given.rank() < 3 || kernel.rank() != given.rank())
      return fail("X " + to_string(given) + " and W " + to_string(kernel) + " do not fit each other");
    std::vector<Tensor> own(inputs.begin(), inputs.end());
    Tensor &x = own[0], &w = own[1];
    if (!order_.input) x = {x.dtype, channels_first(given)};
    w.shape = channels_first(kernel);
    const PackedWeights::Pack pack = moved_weights(inputs[1], w.shape);
    w.data = const_cast<std::byte*>(pack.get());
    Plan plan = conv_->plan(context, own);
    if (plan.step == nullptr) return plan;
    std::vector<Format> formats = plan.input_formats;
    formats.resize(own.size(), Format::kDense);
    x.format = formats[0];
    Tensor y{x.dtype, plan.shapes[0], nullptr, plan.output_format};
    x.data = nullptr;
    plan.step = std::make_unique<NhwcStep>(std::move(plan.step), pack, x, w, y, order_);
    if (!order_.input) formats[0] = Format::kDense;
    if (!order_.output) {
      plan.shapes[0] = channels_last(plan.shapes[0]);
      plan.output_format = Format::kDense;
    }
    plan.input_formats = std::move(formats);
    if (pack != nullptr) plan.packed = 1;
    return plan;
  }

  bool packs(size_t input) const override { return input == 1; }

  // A tensor can only be added if it and the result have their channels first, as in Conv.
  bool append(PostOp&& op) override {
    if (op.kind == PostOp::kAdd && !order_.output) return false;
    return conv_->append(std::move(op));
  }

  void set_order(ChannelsFirst order) { order_ = order; }

 private:
  // Returns the weights as a Conv reads them; null if they are not known.
  PackedWeights::Pack moved_weights(const Tensor& w, const Shape& shape) const {
    if (w.data == nullptr) return nullptr;
    return moved_.get(w, {}, [&] {
      const int64_t bytes = bytes_of(w.dtype, shape.elements());
      std::shared_ptr<std::byte> aligned(allocate_pages(bytes)), result(allocate_pages(bytes));
      std::memcpy(aligned.get(), w.data, static_cast<size_t>(bytes));  // weights in files may be unaligned
      move_channels(w.shape, true, bytes_of(w.dtype, 1), aligned.get(), result.get());
      return result;
    });
  }

  std::unique_ptr<Kernel> conv_;
  ChannelsFirst order_;
  mutable PackedWeights moved_;
};

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  for (uint32_t slot : {1u, 2u})
    if (node.has_input(slot))
      if (Verdict v = same_type(node, 0, slot); !v) return v;
  if (const int64_t group = node.attr("group", int64_t{1}); group < 1)
    return no(BP_REASON_ATTRIBUTE, "group is " + std::to_string(group) + ", but it must be positive");
  const std::vector<int64_t> kernel = node.ints("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t extent = node.input_extent(1, static_cast<int>(i) + 1);
    if (extent >= 0 && extent != kernel[i])
      return no(BP_REASON_ATTRIBUTE, "kernel_shape has " + std::to_string(kernel[i]) +
                                         ", but the weights have extent " + std::to_string(extent));
  }
  return check_window(node);
}

std::unique_ptr<Kernel> create(const Node& node) {
  return std::make_unique<NhwcConv>(node);
}

}  // namespace

bool set_channels_first(Kernel& kernel, ChannelsFirst order) {
  auto* conv = dynamic_cast<NhwcConv*>(&kernel);
  if (conv != nullptr) conv->set_order(order);
  return conv != nullptr;
}

[[gnu::cold]] std::span<const Row> nhwc_conv_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "NhwcConv", 1, supports, create}.in_fp32(0b010).costing(conv_operations<1>),
  };
  return kRows;
}

}  // namespace backplane::cpu
