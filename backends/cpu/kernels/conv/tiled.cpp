// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/tiled.h"

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// Positions per strip. A strip's input stays in a core's caches while all output blocks are computed.
constexpr int64_t kStripPlaces = 56;
// Minimum work of a task, in microseconds at the nominal rate of multiply-adds.
constexpr double kTaskTime = 2.048;

class TiledStep final : public Step {
 public:
  TiledStep(int64_t threads, const TiledWork& work, Tensors inputs, int bias, PackedWeights& packed)
      : work_(work),
        panels_(work.size, work.taps),
        bias_(static_cast<size_t>(blocks_of(work.size.out_channels) * channel_block())),
        compensation_(bias_.size()) {
    const float* given = bias >= 0 ? inputs[static_cast<size_t>(bias)].as<float>() : nullptr;
    const ChannelAffine affine = join_affine(work.post_ops, work.size.out_channels, given);
    std::ranges::copy(affine.compensation, compensation_.begin());
    if (!affine.shift.empty())
      std::ranges::copy(affine.shift, bias_.begin());
    else if (given != nullptr)
      std::copy_n(given, work.size.out_channels, bias_.begin());
    pack_ = packed.get(inputs[1], {},
                       [&] { return panels_.pack(inputs[1].as<std::byte>(), work.transposed, affine.scale); });
    for (const PostOp& op : work.post_ops) {
      if (op.kind == PostOp::kAffine) continue;
      if (op.kind == PostOp::kAdd) {
        summand_ = static_cast<int>(inputs.size()) - 1;
      } else if (op.activation.function == Activation::kRelu && later_.empty()) {
        rectify_ = true;
      } else {
        later_.push_back(op);
        float zero = 0;
        activate(op.activation, &zero, 1);
        clears_ = clears_ || (zero != 0 && work.blocked);
      }
    }
    work_.post_ops = {};
    share_out(threads);
  }

  int inplace() const override { return summand_; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    const auto groups = static_cast<int64_t>(panels_.blocks().size());
    const int64_t units = strips_ * groups;
    const int64_t each = panels_.count() * work_.out_places / units;
    parallel(work_.size.batch * units, 1 + processor().multiply_adds(kTaskTime) / std::max<int64_t>(1, each),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t unit = i % units;
                 const int64_t group = by_channels_ ? unit / strips_ : unit % groups;
                 const int64_t strip = by_channels_ ? unit % strips_ : unit / groups;
                 compute(in, out, i / units, panels_.blocks()[static_cast<size_t>(group)], strip);
               }
             });
    if (clears_) clear_padding(out[0]);
    return std::nullopt;
  }

 private:
  // Threads compute different output channels if the weights are larger than the input, otherwise different strips of
  // positions. All threads then read all of the smaller operand, but only a part of the larger one.
  void share_out(int64_t threads) {
    const auto groups = static_cast<int64_t>(panels_.blocks().size()), tiles = tile_count();
    by_channels_ = panels_.count() > work_.size.in_channels * work_.in_places;
    if (!by_channels_)
      strips_ = std::min(tiles, (work_.out_places + kStripPlaces - 1) / kStripPlaces);
    else if (groups % threads != 0 && groups < 8 * threads)
      strips_ = std::min<int64_t>(tiles, 2);  // so that the threads' amounts of work differ less
  }

  int64_t tile_count() const { return work_.rows.count * static_cast<int64_t>(work_.tiles.size()); }

  // Returns the first position of a tile in the image; for tile_count(), the end of the last tile.
  int64_t place_of(int64_t tile) const {
    const auto in_row = static_cast<int64_t>(work_.tiles.size());
    return tile / in_row * work_.rows.out_width + work_.tiles[static_cast<size_t>(tile % in_row)].y_at;
  }

  // Returns the number of rows k of the window with k · dilation < `distance`.
  int64_t taps_above(int64_t distance) const {
    const TileRows& rows = work_.rows;
    return std::clamp<int64_t>((distance + rows.dilation - 1) / rows.dilation, 0, rows.taps);
  }

  void compute(Tensors in, Tensors out, int64_t image, const OutBlocks& b, int64_t strip) const {
    const TiledWork& w = work_;
    const auto tiles_in_row = static_cast<int64_t>(w.tiles.size());
    const int64_t tiles = tile_count();
    const int64_t begin = strip * tiles / strips_, end = (strip + 1) * tiles / strips_;
    const float* x = in[0].as<float>() + image * blocks_of(w.size.in_channels) * channel_block() * w.in_places;
    const int64_t at = image * blocks_of(w.size.out_channels) * channel_block() * w.out_places + b.block * w.y_block;
    float* y = out[0].as<float>() + at;
    const float* add = summand_ < 0 ? nullptr : in[static_cast<size_t>(summand_)].as<float>() + at;
    const auto* all = reinterpret_cast<const float*>(pack_.get());
    const float* panel = all + b.weights_at;
    ConvTile tile{};
    tile.x_block = w.x_block;
    tile.channel_at = w.channel_at.empty() ? nullptr : w.channel_at.data();
    tile.x_row = w.x_row;
    tile.x_column = w.x_column;
    tile.x_place = w.x_place;
    tile.taps = w.taps;
    tile.columns = w.columns;
    tile.y_block = w.y_block;
    tile.y_place = w.y_place;
    for (int64_t first = b.first; first < b.last; first = tile.last) {
      tile.first = first;
      tile.last = panels_.chunk_end(b, first);
      tile.weights = panel;
      tile.begins = first == b.first;
      tile.compensation = &compensation_[static_cast<size_t>(b.block * channel_block())];
      tile.bias = tile.last == b.last ? &bias_[static_cast<size_t>(b.block * channel_block())] : nullptr;
      tile.rectify = rectify_ && tile.last == b.last;
      const int64_t steps = (tile.last - tile.first) * w.taps;  // pairs of a tap and an input channel
      panel += steps * b.count * channel_block();
      // Each tile prefetches its share of the weights of the next chunk, which is assumed to be as large as this one.
      const bool more = panel < all + panels_.count();
      tile.ahead_step = more ? (b.count * channel_block() + end - begin - 1) / (end - begin) : 0;
      for (int64_t t = begin; t < end; ++t) {
        const TilePlace& place = w.tiles[static_cast<size_t>(t % tiles_in_row)];
        const int64_t row = t / tiles_in_row, top = w.rows.first + row * w.rows.stride;
        const int64_t y_at = (row * w.rows.out_width + place.y_at) * w.y_place;
        tile.x = x + (top * w.rows.in_width + place.x_at) * w.x_place;
        tile.y = y + y_at;
        tile.add = add == nullptr ? nullptr : add + y_at;
        tile.row_first = taps_above(-top);
        tile.row_last = taps_above(w.rows.in_count - top);
        tile.front = place.front;
        tile.back = place.back;
        tile.ahead = more ? panel + (t - begin) * tile.ahead_step * steps : tile.weights;
        place.kernels[b.count - 1](tile);
      }
    }
    if (later_.empty()) return;
    const int64_t first = place_of(begin), last = place_of(end);
    if (w.blocked) {
      for (int64_t block = 0; block < b.count; ++block)
        finish_rows(later_, y + block * w.y_block + first * w.y_place, 0, 1, (last - first) * w.y_place, nullptr);
    } else {
      for (int64_t row = first; row < last; ++row)
        finish_rows(later_, y + row * w.y_place, 0, 1, b.count * channel_block(), nullptr);
    }
  }

  TiledWork work_;
  Panels panels_;
  std::vector<float> bias_, compensation_;
  PackedWeights::Pack pack_;
  std::vector<PostOp> later_;  // activations to apply after the tiles, which compute only a leading Relu
  int summand_ = -1;
  bool rectify_ = false, clears_ = false;
  bool by_channels_ = false;
  int64_t strips_ = 1;
};

}  // namespace

std::unique_ptr<Step> make_tiled(const PlanContext& context, const TiledWork& work, Tensors inputs, int bias,
                                 PackedWeights& packed) {
  return std::make_unique<TiledStep>(context.threads, work, inputs, bias, packed);
}

}  // namespace backplane::cpu
