// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/winograd_conv.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/common/function_kernel.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/conv/panels.h"
#include "kernels/conv/winograd_tile.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// With more pairs of channels per position of the result, reading the weights, which are four times as many as those of
// a direct convolution, takes longer than the convolution saves.
constexpr int64_t kMaxPairs = 1000;
// The least positions of a result and channels on either side for which the transforms pay.
constexpr int64_t kMinPositions = 100, kMinChannels = 32;
// Tiles compute two blocks of output channels at a time.
constexpr int64_t kMultiple = 2 * kWinogradLanes;
// The least tiles of a strip: for each strip, all weights are read.
constexpr int64_t kMinTiles = 96;
// The most tiles of a part that one thread transforms.
constexpr int64_t kPiece = 16;
// Floats between products, so that the 36 addresses of a transform do not compete for the same lines of the cache.
constexpr int64_t kGap = 16;

class WinogradStep final : public Step {
 public:
  WinogradStep(const PlanContext& context, const ConvPlan& conv, Tensors inputs, int bias, PackedWeights& packed)
      : size_(conv.size),
        window_(conv.window),
        panels_(conv.size, 1),
        transforms_(winograd_transforms()),
        bias_(static_cast<size_t>(size_.out_channels)),
        compensation_(bias_.size()) {
    const float* given = bias >= 0 ? inputs[static_cast<size_t>(bias)].as<float>() : nullptr;
    const ChannelAffine affine = join_affine(conv.post_ops, size_.out_channels, given);
    std::ranges::copy(affine.compensation, compensation_.begin());
    if (!affine.shift.empty())
      std::ranges::copy(affine.shift, bias_.begin());
    else if (given != nullptr)
      std::copy_n(given, size_.out_channels, bias_.begin());
    const int64_t order[] = {kWinogradProducts, kWinogradLanes};
    pack_ = packed.get(
        inputs[1], {}, [&] { return pack(inputs[1].as<std::byte>(), affine.scale); }, order);
    for (const PostOp& op : conv.post_ops) {
      if (op.kind == PostOp::kAdd) summand_ = static_cast<int>(inputs.size()) - 1;
      if (op.kind != PostOp::kActivation) continue;
      if (op.activation.function == Activation::kRelu && later_.empty()) {
        rectify_ = true;
      } else {
        later_.push_back(op);
      }
    }
    rows_ = (window_.out[1] + kWinogradOutputs - 1) / kWinogradOutputs;
    columns_ = (window_.out[2] + kWinogradOutputs - 1) / kWinogradOutputs;
    const int64_t cached = context.threads * processor().l2_bytes / int64_t{sizeof(float)};
    most_tiles_ = std::max(kMinTiles, cached / (kWinogradProducts * (size_.in_channels + size_.out_channels)));
    most_tiles_ = std::min(most_tiles_, rows_ * columns_);
  }

  int inplace() const override { return summand_; }
  int64_t scratch_bytes() const override {
    return product({kWinogradProducts, v_product() + m_product(), int64_t{sizeof(float)}});
  }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    auto* v = static_cast<float*>(scratch);
    float* m = v + kWinogradProducts * v_product();
    for (int64_t image = 0; image < size_.batch; ++image) {
      const float* x = in[0].as<float>() + image * size_.in_channels * window_.in_size();
      const int64_t at = image * size_.out_channels * window_.out_size();
      const float* add = summand_ < 0 ? nullptr : in[static_cast<size_t>(summand_)].as<float>() + at;
      for (int64_t first = 0; first < rows_ * columns_; first += most_tiles_) {
        const Strip strip{first, std::min(first + most_tiles_, rows_ * columns_)};
        transform_inputs(strip, x, v);
        multiply(strip, v, m);
        transform_outputs(strip, m, add, out[0].as<float>() + at);
      }
    }
    return std::nullopt;
  }

 private:
  // The tiles [first, last) of an image, row by row.
  struct Strip {
    int64_t first, last;
    int64_t count() const { return last - first; }
  };

  // Floats from one product to the next: of transformed inputs [tile][channel], and of sums [block][tile][lane].
  int64_t v_product() const { return most_tiles_ * size_.in_channels + kGap; }
  int64_t m_product() const { return most_tiles_ * size_.out_channels + kGap; }

  // For each product, panels as for a window of 1 × 1.
  std::shared_ptr<std::byte> pack(const std::byte* from, const std::vector<float>& scale) const {
    const int64_t each = panels_.count(), floats = kWinogradProducts * each;
    std::shared_ptr<std::byte> memory(allocate_pages(floats * int64_t{sizeof(float)}));
    auto* to = reinterpret_cast<float*>(memory.get());
    parallel(static_cast<int64_t>(panels_.blocks().size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const OutBlocks& b = panels_.blocks()[static_cast<size_t>(i)];
        const int64_t first = b.block * kWinogradLanes, width = b.count * kWinogradLanes;
        for (int64_t o = first; o < first + width; ++o) {
          for (int64_t c = 0; c < size_.in_channels; ++c) {
            float weights[9];
            std::memcpy(weights, from + (o * size_.in_channels + c) * int64_t{sizeof weights}, sizeof weights);
            transform_winograd_weights(weights, scale.empty() ? 1 : scale[static_cast<size_t>(o)],
                                       to + b.weights_at + c * width + o - first, each);
          }
        }
      }
    });
    return memory;
  }

  // Calls run(block, first tile, number of tiles) for parts of rows of tiles, in each of `blocks` blocks of channels,
  // in parallel.
  template <class F>
  void each_run(const Strip& strip, int64_t blocks, const F& run) const {
    const int64_t pieces = (strip.count() + kPiece - 1) / kPiece;
    parallel(blocks * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t last = std::min(strip.first + (unit % pieces + 1) * kPiece, strip.last);
        for (int64_t t = strip.first + unit % pieces * kPiece, count = 0; t < last; t += count) {
          count = std::min(last - t, columns_ - t % columns_);
          run(unit / pieces, t, count);
        }
      }
    });
  }

  void transform_inputs(const Strip& strip, const float* x, float* v) const {
    const int64_t height = window_.in[1], width = window_.in[2];
    each_run(strip, size_.in_channels / kWinogradLanes, [&](int64_t block, int64_t first, int64_t count) {
      const int64_t top = first / columns_ * kWinogradOutputs - window_.begin[1];
      WinogradInputs tile{};
      tile.x_row = width * kWinogradLanes;
      tile.row_first = std::clamp<int64_t>(-top, 0, kWinogradInputs);
      tile.row_last = std::clamp<int64_t>(height - top, 0, kWinogradInputs);
      tile.v_product = v_product();
      for (int64_t t = first; t < first + count; ++t) {
        const int64_t left = t % columns_ * kWinogradOutputs - window_.begin[2];
        tile.column_first = std::clamp<int64_t>(-left, 0, kWinogradInputs);
        tile.column_last = std::clamp<int64_t>(width - left, 0, kWinogradInputs);
        tile.x = x + ((block * height + top) * width + left) * kWinogradLanes;
        tile.v = v + (t - strip.first) * size_.in_channels + block * kWinogradLanes;
        transforms_.inputs(tile);
      }
    });
  }

  void multiply(const Strip& strip, const float* v, float* m) const {
    const auto groups = static_cast<int64_t>(panels_.blocks().size());
    const int64_t tiles = strip.count(), most = max_tile_positions(kWinogradLanes);
    const int64_t parts = (tiles + most - 1) / most;
    const auto* all = reinterpret_cast<const float*>(pack_.get());
    const float* end_of_all = all + kWinogradProducts * panels_.count();
    static constexpr float kZeros[2 * kWinogradLanes] = {};
    parallel(kWinogradProducts * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t k = unit / groups;
        const OutBlocks& b = panels_.blocks()[static_cast<size_t>(unit % groups)];
        const float* panel = all + k * panels_.count() + b.weights_at;
        ConvTile tile{};
        tile.x_position = size_.in_channels;
        tile.taps = tile.columns = tile.row_last = 1;
        tile.compensation = kZeros;
        tile.y_block = most_tiles_ * kWinogradLanes;
        tile.y_position = kWinogradLanes;
        for (int64_t first = b.first; first < b.last; first = tile.last) {
          tile.first = first;
          tile.last = panels_.chunk_end(b, first);
          tile.begins = first == b.first;
          tile.weights = panel;
          const int64_t steps = tile.last - tile.first;
          panel += steps * b.count * kWinogradLanes;
          const bool more = panel < end_of_all;  // each part prefetches its share of the weights that follow
          tile.ahead_step = more ? (b.count * kWinogradLanes + parts - 1) / parts : 0;
          for (int64_t part = 0; part < parts; ++part) {
            const int64_t at = part * tiles / parts, positions = (part + 1) * tiles / parts - at;
            tile.x = v + k * v_product() + at * size_.in_channels;
            tile.y = m + k * m_product() + b.block * tile.y_block + at * kWinogradLanes;
            tile.ahead = more ? panel + part * tile.ahead_step * steps : tile.weights;
            conv_tile_kernel(kWinogradLanes, b.count, positions, 0)(tile);
          }
        }
      }
    });
  }

  void transform_outputs(const Strip& strip, const float* m, const float* add, float* y) const {
    const int64_t height = window_.out[1], width = window_.out[2];
    each_run(strip, size_.out_channels / kWinogradLanes, [&](int64_t block, int64_t first, int64_t count) {
      const int64_t top = first / columns_ * kWinogradOutputs, left = first % columns_ * kWinogradOutputs;
      WinogradOutputs tile{};
      tile.m_product = m_product();
      tile.y_row = width * kWinogradLanes;
      tile.rows = std::min(kWinogradOutputs, height - top);
      tile.compensation = &compensation_[static_cast<size_t>(block * kWinogradLanes)];
      tile.bias = &bias_[static_cast<size_t>(block * kWinogradLanes)];
      tile.rectify = rectify_;
      const int64_t at = (block * height + top) * tile.y_row + left * kWinogradLanes;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t to = at + i * kWinogradOutputs * kWinogradLanes;
        tile.columns = std::min(kWinogradOutputs, width - left - i * kWinogradOutputs);
        tile.m = m + (block * most_tiles_ + first - strip.first + i) * kWinogradLanes;
        tile.y = y + to;
        tile.add = add == nullptr ? nullptr : add + to;
        transforms_.outputs(tile);
      }
      if (later_.empty()) return;
      const int64_t floats = std::min(count * kWinogradOutputs, width - left) * kWinogradLanes;
      for (int64_t row = 0; row < tile.rows; ++row)
        finish_rows(later_, y + at + row * tile.y_row, 0, 1, floats, nullptr);
    });
  }

  ConvSize size_;
  Window window_;
  Panels panels_;
  WinogradTransforms transforms_;
  std::vector<float> bias_, compensation_;
  PackedWeights::Pack pack_;
  std::vector<PostOp> later_;  // activations to apply after the tiles, which compute only a leading Relu
  int summand_ = -1;
  bool rectify_ = false;
  int64_t rows_ = 1, columns_ = 1;  // of tiles in an image
  int64_t most_tiles_ = 1;          // tiles of a strip, whose transforms are in memory at the same time
};

}  // namespace

const char* refuse_winograd_conv(const ConvPlan& conv, std::span<const Tensor> inputs) {
  const ConvSize& size = conv.size;
  const Window& w = conv.window;
  if (channel_block() != kWinogradLanes) return "blocks do not have 8 channels";
  if (inputs[1].data == nullptr || (inputs.size() > 2 && inputs[2].present() && inputs[2].data == nullptr))
    return "its weights or bias are not known";
  if (w.dims != 2 || w.kernel != Spatial{1, 3, 3} || w.stride != Spatial{1, 1, 1} || w.dilation != Spatial{1, 1, 1})
    return "its window is not 3 × 3 with stride 1";
  if (size.groups != 1 || conv.shuffled_groups > 1) return "it has groups";
  if (size.in_channels % kMultiple != 0 || size.out_channels % kMultiple != 0)
    return "its channels do not fill pairs of blocks";
  if (std::min(size.in_channels, size.out_channels) < kMinChannels || w.out_size() < kMinPositions ||
      size.in_channels * size.out_channels > kMaxPairs * w.out_size())
    return "its transforms would take longer than they save";
  return nullptr;
}

Plan plan_winograd_conv(const PlanContext& context, const ConvPlan& conv, Tensors inputs, PackedWeights& packed) {
  const int bias = inputs.size() > 2 && inputs[2].present() ? 2 : -1;
  return blocked_plan(conv, inputs.size(), std::make_unique<WinogradStep>(context, conv, inputs, bias, packed));
}

}  // namespace backplane::cpu
