// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/tiled.h"

#include <algorithm>
#include <utility>

#include "kernels/common/function_kernel.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// Positions per strip. A strip's input stays in a core's caches while all output blocks are computed.
constexpr int64_t kStripPositions = 56;
// Minimum work of a task, in microseconds at the nominal rate of multiply-adds.
constexpr double kTaskTime = 2.048;
// Minimum floats of a task that copies.
constexpr int64_t kCopyGrain = 1 << 14;

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
    pack_ = packed.get(
        inputs[1], {},
        [&] { return panels_.pack(inputs[1].as<std::byte>(), work.transposed, affine.scale, work.tap_at); },
        work.tap_at);
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
  int64_t scratch_bytes() const override { return product({copy_floats() + ragged_floats(), int64_t{sizeof(float)}}); }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const auto* x = in[0].as<float>();
    auto* own = static_cast<float*>(scratch);
    if (work_.copy.width != 0) {
      copy_image(x, own);
      x = std::exchange(own, own + copy_floats());
    }
    const auto groups = static_cast<int64_t>(panels_.blocks().size());
    const int64_t units = strips_ * groups;
    const int64_t each = panels_.count() * work_.out_positions / units;
    parallel(work_.size.batch * units, 1 + processor().multiply_adds(kTaskTime) / std::max<int64_t>(1, each),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t unit = i % units;
                 const int64_t group = by_channels_ ? unit / strips_ : unit % groups;
                 const int64_t strip = by_channels_ ? unit % strips_ : unit / groups;
                 compute(x, in, out, i / units, panels_.blocks()[static_cast<size_t>(group)], strip, own);
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
    by_channels_ = panels_.count() > work_.size.in_channels * work_.in_positions;
    if (!by_channels_)
      strips_ = std::min(tiles, (work_.out_positions + kStripPositions - 1) / kStripPositions);
    else if (groups % threads != 0 && groups < 8 * threads)
      strips_ = std::min<int64_t>(tiles, 2);  // so that the threads' amounts of work differ less
  }

  int64_t tile_count() const { return work_.rows.count * static_cast<int64_t>(work_.tiles.size()); }

  // Returns the first position of a tile in the image; for tile_count(), the end of the last tile.
  int64_t position_of(int64_t tile) const {
    const auto in_row = static_cast<int64_t>(work_.tiles.size());
    return tile / in_row * work_.rows.out_width + work_.tiles[static_cast<size_t>(tile % in_row)].y_at;
  }

  // Returns the number of rows k of the window with k · dilation < `distance`.
  int64_t taps_above(int64_t distance) const {
    const TileRows& rows = work_.rows;
    return std::clamp<int64_t>((distance + rows.dilation - 1) / rows.dilation, 0, rows.taps);
  }

  int64_t copy_floats() const { return work_.copy.width == 0 ? 0 : product({work_.size.batch, image_floats()}); }
  // The columns of these blocks that the result has.
  int64_t columns_of(const OutBlocks& b) const {
    return std::min(b.count * channel_block(), work_.size.out_channels - b.block * channel_block());
  }
  // Whether a dense result has only some of the blocks' columns. Tiles then write to rows in scratch memory.
  bool is_ragged(const OutBlocks& b) const { return !work_.blocked && columns_of(b) < b.count * channel_block(); }
  int64_t ragged_floats() const {
    const OutBlocks& last = panels_.blocks().back();
    return is_ragged(last) ? product({work_.out_positions, last.count * channel_block()}) : 0;
  }
  // Floats of an image as tiles read it.
  int64_t image_floats() const { return blocks_of(work_.size.in_channels) * channel_block() * work_.in_positions; }

  void copy_image(const float* x, float* to) const {
    const TileCopy& c = work_.copy;
    const int64_t lanes = channel_block(), floats = c.width * lanes;
    parallel(work_.size.batch * image_floats() / floats, 1 + kCopyGrain / floats, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t lacks = c.before - row % c.phases;  // position p is the image's p · step - lacks
        const int64_t first = std::clamp<int64_t>((lacks + c.step - 1) / c.step, 0, c.width);
        const int64_t beyond = c.given + lacks;  // the end of the image's row, as p · step
        const int64_t last = std::clamp<int64_t>(beyond > 0 ? (beyond - 1) / c.step + 1 : 0, first, c.width);
        const float* from = x + (row / c.phases * c.given + first * c.step - lacks) * lanes;
        float* at = std::fill_n(to + row * floats, first * lanes, 0.0f);
        if (c.step == 1) {
          at = std::copy_n(from, (last - first) * lanes, at);
        } else {
          for (int64_t p = first; p < last; ++p, from += c.step * lanes) at = std::copy_n(from, lanes, at);
        }
        std::fill_n(at, (c.width - last) * lanes, 0.0f);
      }
    });
  }

  // `own` has ragged_floats() floats.
  void compute(const float* images, Tensors in, Tensors out, int64_t image, const OutBlocks& b, int64_t strip,
               float* own) const {
    const TiledWork& w = work_;
    const auto tiles_in_row = static_cast<int64_t>(w.tiles.size());
    const int64_t tiles = tile_count();
    const int64_t begin = strip * tiles / strips_, end = (strip + 1) * tiles / strips_;
    const float* x = images + image * image_floats();
    const int64_t at = image * blocks_of(w.size.out_channels) * channel_block() * w.out_positions + b.block * w.y_block;
    float* y = out[0].as<float>() + at;
    const float* add = summand_ < 0 ? nullptr : in[static_cast<size_t>(summand_)].as<float>() + at;
    float* const result = y;
    int64_t y_position = w.y_position;
    const int64_t first_position = position_of(begin), last_position = position_of(end);
    if (is_ragged(b)) {
      y = own;
      y_position = b.count * channel_block();
      for (int64_t row = first_position; add != nullptr && row < last_position; ++row)
        std::copy_n(add + row * w.y_position, columns_of(b), own + row * y_position);
      add = add == nullptr ? nullptr : own;
    }
    const auto* all = reinterpret_cast<const float*>(pack_.get());
    const float* panel = all + b.weights_at;
    ConvTile tile{};
    tile.x_block = w.x_block;
    tile.channel_at = w.channel_at.empty() ? nullptr : w.channel_at.data();
    tile.x_row = w.x_row;
    tile.x_column = w.x_column;
    tile.x_position = w.x_position;
    tile.taps = w.taps;
    tile.columns = w.columns;
    tile.y_block = w.y_block;
    tile.y_position = y_position;
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
        const RowTile& in_row = w.tiles[static_cast<size_t>(t % tiles_in_row)];
        const int64_t row = t / tiles_in_row, top = w.rows.first + row * w.rows.stride;
        const int64_t y_at = (row * w.rows.out_width + in_row.y_at) * y_position;
        tile.x = x + (top * w.rows.in_width + in_row.x_at) * w.x_position;
        tile.y = y + y_at;
        tile.add = add == nullptr ? nullptr : add + y_at;
        tile.row_first = taps_above(-top);
        tile.row_last = taps_above(w.rows.in_count - top);
        tile.front = in_row.front;
        tile.back = in_row.back;
        tile.ahead = more ? panel + (t - begin) * tile.ahead_step * steps : tile.weights;
        in_row.kernels[b.count - 1](tile);
      }
    }
    finish(b, y, y_position, result, first_position, last_position);
  }

  // Applies the activations to the rows [first, last) of `y`, and copies them to `result` if they are not there.
  void finish(const OutBlocks& b, float* y, int64_t y_position, float* result, int64_t first, int64_t last) const {
    if (work_.blocked) {
      for (int64_t block = 0; block < b.count && !later_.empty(); ++block)
        finish_rows(later_, y + block * work_.y_block + first * y_position, 0, 1, (last - first) * y_position, nullptr);
      return;
    }
    const int64_t columns = columns_of(b);
    for (int64_t row = first; row < last; ++row) {
      if (!later_.empty()) finish_rows(later_, y + row * y_position, 0, 1, columns, nullptr);
      if (is_ragged(b)) std::copy_n(y + row * y_position, columns, result + row * work_.y_position);
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
