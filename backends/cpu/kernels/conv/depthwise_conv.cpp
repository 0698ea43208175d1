// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_conv.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/conv/blocked_conv.h"
#include "kernels/post_op/activation.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

// Neighboring positions of a row, and a block of channels. Their sums stay in registers.
struct Tile {
  const float* x;                    // the input that the first tap of the first position reads
  int64_t x_row, x_tap, x_position;  // floats from one row of taps, tap, or position to the next
  int64_t rows, taps;                // rows of taps, and taps of a row
  const float* weights;              // a block of channels for each tap
  const float* shift;                // a block of channels, added to the sums
  const float* add;                  // a tensor to add, in the layout of y; or null
  float* y;
};

template <class Lanes, int kPositions>
CLONED void compute_tile(const Tile& tile) {
  Lanes sums[kPositions];
  for (int p = 0; p < kPositions; ++p) sums[p] = Lanes::all(0);
  const float* weights = tile.weights;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* x = tile.x + r * tile.x_row;
    for (int64_t k = 0; k < tile.taps; ++k, x += tile.x_tap, weights += Lanes::kCount) {
      const Lanes weight = Lanes::load(weights);
      for (int p = 0; p < kPositions; ++p) sums[p] = sums[p] + Lanes::load(x + p * tile.x_position) * weight;
    }
  }
  const Lanes shift = Lanes::load(tile.shift);
  for (int p = 0; p < kPositions; ++p) {
    Lanes y = sums[p] + shift;
    if (tile.add != nullptr) y = y + Lanes::load(tile.add + p * Lanes::kCount);
    y.store(tile.y + p * Lanes::kCount);
  }
}

using TileKernel = void (*)(const Tile& tile);
constexpr int kMostPositions = 16;

template <int... kPositions>
constexpr std::array<TileKernel, sizeof...(kPositions)> list_kernels(std::integer_sequence<int, kPositions...>) {
  return {clone_of<compute_tile<FloatLanes<64, 1>, kPositions + 1>, compute_tile<FloatLanes<32, 1>, kPositions + 1>,
                   compute_tile<FloatLanes<16, 2>, kPositions + 1>>...};
}
// The kernels for 1, 2, … positions. Vectors have channel_block() floats.
constexpr auto kKernels = list_kernels(std::make_integer_sequence<int, kMostPositions>());

// Returns the number of positions of a tile whose sums fit in registers.
int64_t most_positions() {
  if (processor().has(Instructions::kAvx512)) return kMostPositions;
  return processor().has(Instructions::kAvx2) ? 8 : 4;
}

// Windows and strides longer than this multiple of a row would mostly read padding.
constexpr int64_t kLargestReach = 8;
// The largest size of a thread's copy of a tile's input, in floats.
constexpr int64_t kMostCopied = 1 << 20;
// The least number of multiply-adds of vectors that a task computes.
constexpr int64_t kGrain = 4096;

int64_t reach_of(const Window& w) {
  return (w.kernel[2] - 1) * w.dilation[2] + 1;
}

// Returns the number of floats that a tile reads from a row of the input.
int64_t row_floats_of(const Window& w) {
  return ((most_positions() - 1) * w.stride[2] + reach_of(w)) * channel_block();
}

class DepthwiseConv final : public Step {
 public:
  DepthwiseConv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs, PackedWeights& packed)
      : size_(conv.size),
        window_(conv.window),
        lanes_(channel_block()),
        blocks_((size_.in_channels + lanes_ - 1) / lanes_),
        tiles_((window_.out[2] + most_positions() - 1) / most_positions()),
        threads_(context.threads),
        row_floats_(row_floats_of(window_)) {
    const bool has_bias = inputs.size() > 2 && inputs[2].present();
    const float* bias = has_bias ? inputs[2].as<float>() : nullptr;
    ChannelAffine affine = join_affine(conv.post_ops, size_.out_channels, bias);
    if (affine.shift.empty() && has_bias) affine.shift.assign(bias, bias + size_.out_channels);
    shift_ = std::move(affine.shift);
    shift_.resize(static_cast<size_t>(blocks_ * lanes_));
    for (const PostOp& op : conv.post_ops) {
      if (op.kind == PostOp::kAdd) summand_ = static_cast<int>(inputs.size()) - 1;
      if (op.kind == PostOp::kActivation) activations_.push_back(op.activation);
    }
    const int64_t order[] = {lanes_};
    pack_ = packed.get(
        inputs[1], {}, [&] { return pack_weights(inputs[1], affine.scale); }, order);
  }

  int inplace() const override { return summand_; }
  int64_t scratch_bytes() const override { return threads_ * align_up(copy_bytes()); }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out,
                                 void* scratch) const override {
    const auto* x = in[0].as<float>();
    auto* y = out[0].as<float>();
    const float* add = summand_ < 0 ? nullptr : in[static_cast<size_t>(summand_)].as<float>();
    const int64_t rows = window_.out[1], width = window_.out[2];
    const int64_t grain = 1 + kGrain / (most_positions() * window_.kernel_size());
    parallel(size_.batch * blocks_ * rows * tiles_, grain, [&](int64_t begin, int64_t end) {
      auto* copy = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + thread_index() * align_up(copy_bytes()));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t tile = task % tiles_, row = task / tiles_ % rows, plane = task / tiles_ / rows;
        const int64_t first = tile * width / tiles_, positions = (tile + 1) * width / tiles_ - first;
        const int64_t at = ((plane * rows + row) * width + first) * lanes_;
        compute(x + plane * window_.in_size() * lanes_, plane % blocks_, row, first, positions,
                add == nullptr ? nullptr : add + at, y + at, copy);
      }
    });
    return std::nullopt;
  }

 private:
  // [block][tap][channel of the block], multiplied by the channels' scales unless there are none.
  PackedWeights::Pack pack_weights(const Tensor& weights, std::span<const float> scale) const {
    const int64_t taps = window_.kernel_size(), bytes = blocks_ * taps * lanes_ * int64_t{sizeof(float)};
    std::shared_ptr<std::byte> pack(allocate_pages(bytes));
    std::memset(pack.get(), 0, static_cast<size_t>(bytes));
    auto* to = reinterpret_cast<float*>(pack.get());
    for (int64_t c = 0; c < size_.in_channels; ++c) {
      for (int64_t k = 0; k < taps; ++k) {
        float weight;  // may be unaligned
        std::memcpy(&weight, weights.as<std::byte>() + (c * taps + k) * int64_t{sizeof(float)}, sizeof weight);
        to[(c / lanes_ * taps + k) * lanes_ + c % lanes_] =
            scale.empty() ? weight : weight * scale[static_cast<size_t>(c)];
      }
    }
    return pack;
  }

  int64_t copy_bytes() const { return window_.kernel[1] * row_floats_ * int64_t{sizeof(float)}; }

  // Computes positions [first, first + positions) of a row from a plane, which is a block of channels of an image.
  // `copy` is memory for the input that these positions read, used if some of it is outside the image's rows.
  void compute(const float* plane, int64_t block, int64_t row, int64_t first, int64_t positions, const float* add,
               float* y, float* copy) const {
    const Window& w = window_;
    const int64_t width = w.in[2], left = first * w.stride[2] - w.begin[2];
    const int64_t end = left + (positions - 1) * w.stride[2] + reach_of(w);
    // Rows of taps [above, below) read rows of the image that are `step` apart; the others read padding.
    const int64_t step = w.dilation[1], start = row * w.stride[1] - w.begin[1];
    const int64_t above = start >= 0 ? 0 : std::min(w.kernel[1], (step - 1 - start) / step);
    const int64_t below = start >= w.in[1] ? above : std::clamp((w.in[1] - 1 - start) / step + 1, above, w.kernel[1]);
    const float* from = plane + (start + above * step) * width * lanes_;
    int64_t x_row = step * width * lanes_;
    if (left < 0 || end > width) {
      const int64_t inside = std::clamp<int64_t>(0, left, end), outside = std::clamp(width, inside, end);
      for (int64_t r = 0; r < below - above; ++r) {
        float* to = copy + r * row_floats_;
        std::fill(to, to + (inside - left) * lanes_, 0.0f);
        std::copy(from + r * x_row + inside * lanes_, from + r * x_row + outside * lanes_,
                  to + (inside - left) * lanes_);
        std::fill(to + (outside - left) * lanes_, to + (end - left) * lanes_, 0.0f);
      }
      from = copy;
      x_row = row_floats_;
    } else {
      from += left * lanes_;
    }
    const float* weights = reinterpret_cast<const float*>(pack_.get()) + block * w.kernel_size() * lanes_;
    kKernels[static_cast<size_t>(positions - 1)]({.x = from,
                                                  .x_row = x_row,
                                                  .x_tap = w.dilation[2] * lanes_,
                                                  .x_position = w.stride[2] * lanes_,
                                                  .rows = below - above,
                                                  .taps = w.kernel[2],
                                                  .weights = weights + above * w.kernel[2] * lanes_,
                                                  .shift = shift_.data() + block * lanes_,
                                                  .add = add,
                                                  .y = y});
    if (activations_.empty()) return;
    for (const Activation& activation : activations_) activate(activation, y, positions * lanes_);
    const int64_t channels = std::min(lanes_, size_.in_channels - block * lanes_);
    for (int64_t p = 0; channels < lanes_ && p < positions; ++p)
      std::fill(y + p * lanes_ + channels, y + (p + 1) * lanes_, 0.0f);
  }

  ConvSize size_;
  Window window_;
  int64_t lanes_, blocks_, tiles_, threads_;
  int64_t row_floats_;
  std::vector<float> shift_;
  std::vector<Activation> activations_;
  int summand_ = -1;
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_depthwise_conv(const ConvPlan& conv, std::span<const Tensor> inputs) {
  const ConvSize& size = conv.size;
  const Window& w = conv.window;
  if (size.groups < 2 || size.groups != size.in_channels || size.groups != size.out_channels)
    return "it is not depthwise";
  if (inputs[1].data == nullptr || (inputs.size() > 2 && inputs[2].present() && inputs[2].data == nullptr))
    return "its weights or bias are not known";
  if (conv.shuffled_groups > 1) return "its input channels are shuffled";
  if (w.kernel[0] != 1 || w.in[0] != 1 || w.out[0] != 1 || w.begin[0] != 0) return "it has three spatial dimensions";
  if (std::max(reach_of(w), w.stride[2]) / kLargestReach > w.in[2])
    return "its windows reach too far outside the image";
  if (row_floats_of(w) > kMostCopied / w.kernel[1]) return "its windows are too large to be copied";
  return nullptr;
}

Plan plan_depthwise_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                         PackedWeights& packed) {
  return blocked_plan(conv, inputs.size(), std::make_unique<DepthwiseConv>(context, conv, inputs, packed));
}

}  // namespace backplane::cpu
