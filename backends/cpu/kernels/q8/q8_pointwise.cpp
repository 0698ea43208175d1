// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_pointwise.h"

#include <algorithm>
#include <array>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/q8/q8_depthwise_tile.h"
#include "kernels/q8/q8_pointwise_tile.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kGroup = 4, kChunk = kPointwiseChannels;
// Tiles per strip, unless threads divide the output channels. A strip's input stays in the core's caches while all
// output channels of a section are computed.
constexpr int64_t kStripTiles = 8;
// Minimum multiply-adds of a task.
constexpr int64_t kTaskWork = int64_t{1} << 19;

// Rows of output positions whose inputs are evenly spaced.
struct Rows {
  int64_t count, width;  // rows of the output, and positions in each
  int64_t x_position;    // input positions from one output position to the next

  explicit Rows(const Window& w) {
    const bool flat = w.stride == Spatial{1, 1, 1} && w.in == w.out;
    count = flat ? 1 : w.out[0] * w.out[1];
    width = flat ? w.out_size() : w.out[2];
    x_position = flat ? 1 : w.stride[2];
  }
};

class PointwiseStep final : public Step {
 public:
  PointwiseStep(int64_t threads, Q8Work work, Tensors inputs, PackedWeights& packed)
      : work_(std::move(work)),
        rows_(work_.window),
        in_channels_(work_.size.in_channels),
        out_channels_(work_.size.out_channels),
        chunks_((out_channels_ + kChunk - 1) / kChunk),
        pack_chunk_(kChunk * (3 * int64_t{sizeof(float)} + in_channels_)),
        in_row_((rows_.width + kMaxPointwisePositions - 1) / kMaxPointwisePositions),
        kernels_(all_kernels(work_.sum.has_value(), work_.source.is_signed())) {
    if (work_.sum) sum_ = pointwise_sum(work_);
    share_out(threads);
    pack_ = packed.get(inputs[1], {}, [&] { return pack(inputs[1]); });
  }

  // Chunks that overlap compute some results twice. If run in place, they would add the other tensor to these twice.
  int inplace() const override { return work_.sum && out_channels_ % kChunk == 0 ? 2 : -1; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    const Window& w = work_.window;
    const int64_t units = sections_ * strips_;
    const int64_t each = w.out_size() * in_channels_ * out_channels_ / units;
    parallel(work_.size.batch * units, 1 + kTaskWork / std::max<int64_t>(1, each), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / units, unit = i % units;
        const int64_t section = by_channels_ ? unit / strips_ : unit % sections_;
        const int64_t strip = by_channels_ ? unit % strips_ : unit / sections_;
        const int64_t at = image * w.out_size() * out_channels_;
        compute(in[0].as<uint8_t>() + image * w.in_size() * in_channels_, out[0].as<uint8_t>() + at,
                work_.sum ? in[2].as<uint8_t>() + at : nullptr, section, strip);
      }
    });
    return std::nullopt;
  }

 private:
  int64_t tiles() const { return rows_.count * in_row_; }

  // Threads compute different output channels if the weights are larger than the input, otherwise different strips of
  // positions. All threads then read all of the smaller operand, but only a part of the larger one.
  void share_out(int64_t threads) {
    const int64_t wanted = 4 * threads;  // the intended number of tasks
    // A section is the chunks of channels that one task computes. The last two chunks may overlap and are always in the
    // same section, so that two threads never write the same results.
    const int64_t max_sections = out_channels_ / kChunk;
    by_channels_ = out_channels_ > work_.window.in_size();
    if (by_channels_) {
      sections_ = max_sections;
      strips_ = std::clamp<int64_t>((wanted + sections_ - 1) / sections_, 1, tiles());
    } else {
      const int64_t strips = (tiles() + kStripTiles - 1) / kStripTiles;
      strips_ = strips < wanted ? strips : std::min(tiles(), (strips + wanted - 1) / wanted * wanted);
      sections_ = std::clamp<int64_t>((wanted + strips_ - 1) / strips_, 1, max_sections);
    }
  }

  int64_t first_channel(int64_t chunk) const { return std::min(chunk * kChunk, out_channels_ - kChunk); }

  // Packs the weights of 64 output channels for PointwiseTile.
  void pack_chunk(const Tensor& weights, int64_t chunk, const Q8Pack& to) const {
    const bool is_signed = weights.dtype == BP_DTYPE_INT8;
    for (int64_t lane = 0; lane < kChunk; ++lane) {
      const int64_t channel = first_channel(chunk) + lane_channel(lane, kChunk);
      int32_t sum = 0;
      for (int64_t i = 0; i < in_channels_; ++i) {
        const int64_t at = work_.transposed ? i * out_channels_ + channel : channel * in_channels_ + i;
        const int32_t weight = q8_at(weights.data, is_signed, at) - work_.weight_zero;
        to.weights[(i / kGroup * kChunk + lane) * kGroup + i % kGroup] = static_cast<int8_t>(weight);
        sum += weight;
      }
      to.set(lane, work_, channel, sum);
    }
  }

  PackedWeights::Pack pack(const Tensor& weights) const {
    std::shared_ptr<std::byte> result(allocate_pages(chunks_ * pack_chunk_));
    parallel(chunks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk)
        pack_chunk(weights, chunk, {result.get() + chunk * pack_chunk_, kChunk});
    });
    return result;
  }

  void compute(const uint8_t* x, uint8_t* y, const uint8_t* other, int64_t section, int64_t strip) const {
    const Window& w = work_.window;
    const int64_t first = strip * tiles() / strips_, last = (strip + 1) * tiles() / strips_;
    // The section's chunks are [begin, end). The last section includes the channels after the last whole chunk.
    const int64_t whole = out_channels_ / kChunk;
    const int64_t begin = section * whole / sections_;
    const int64_t end = section == sections_ - 1 ? chunks_ : (section + 1) * whole / sections_;
    PointwiseTile tile{.x = nullptr,
                       .x_position = rows_.x_position * in_channels_,
                       .groups = in_channels_ / kGroup,
                       .pack = nullptr,
                       .y = nullptr,
                       .y_position = out_channels_,
                       .zero = work_.result.zero,
                       .low = work_.low(),
                       .high = work_.high(),
                       .result_signed = work_.result.is_signed(),
                       .sum = nullptr,
                       .other = nullptr,
                       .ahead = nullptr,
                       .ahead_step = 0};
    if (work_.sum) {
      const Quantization& to = work_.sum->result;
      tile.zero = to.zero;
      tile.low = work_.sum->rectifies ? to.zero : to.low();
      tile.high = to.high();
      tile.sum = &sum_;
    }
    for (int64_t c = begin; c < end; ++c) {
      tile.pack = pack_.get() + c * pack_chunk_;
      // Each tile prefetches its share of the weights of the next chunk.
      const bool more = by_channels_ && c + 1 < chunks_;
      tile.ahead_step = more ? (kGroup * kChunk + last - first - 1) / (last - first) : 0;
      for (int64_t t = first; t < last; ++t) {
        const int64_t row = t / in_row_, in_row = t % in_row_;
        const int64_t position = in_row * rows_.width / in_row_, next = (in_row + 1) * rows_.width / in_row_;
        const int64_t from = row / w.out[1] * w.stride[0] * w.in[1] * w.in[2] + row % w.out[1] * w.stride[1] * w.in[2] +
                             position * rows_.x_position;
        tile.x = x + from * in_channels_;
        const int64_t at = (row * rows_.width + position) * out_channels_ + first_channel(c);
        tile.y = y + at;
        if (work_.sum) tile.other = other + at;
        tile.ahead = more ? tile.pack + pack_chunk_ + (t - first) * tile.ahead_step * tile.groups : tile.pack;
        kernels_[next - position - 1](tile);
      }
    }
  }

  using Kernels = std::array<PointwiseKernel, kMaxPointwisePositions>;  // indexed by the number of positions minus 1
  static Kernels all_kernels(bool adds, bool is_signed) {
    Kernels kernels{};
    for (size_t i = 0; i < kernels.size(); ++i)
      kernels[i] = pointwise_kernel(static_cast<int64_t>(i) + 1, adds, is_signed);
    return kernels;
  }

  Q8Work work_;
  Rows rows_;
  int64_t in_channels_, out_channels_, chunks_, pack_chunk_;
  int64_t in_row_;  // tiles per row
  Kernels kernels_;
  PointwiseSum sum_{};
  bool by_channels_ = false;
  int64_t sections_ = 1, strips_ = 1;
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_pointwise(const Q8Work& work) {
  const Window& w = work.window;
  const int64_t out = work.size.out_channels, chunks = (out + kChunk - 1) / kChunk;
  if (pointwise_kernel(1, false, false) == nullptr) return "AVX-512 VNNI is not available";
  if (work.size.groups != 1) return "it has groups";
  if (w.kernel_size() != 1) return "its window is larger than 1x1";
  if (work.reads_padding()) return "it reads padding";
  if (work.size.in_channels % kGroup != 0) return "its number of input channels is not a multiple of 4";
  // If the last chunk overlaps the one before it, some results are computed twice: at most a fifth of the work.
  if (out < kChunk || 4 * chunks * kChunk > 5 * out) return "its output channels do not fill chunks of 64 well enough";
  return work.stays_small() && (!work.sum || work.sum->stays_small()) ? nullptr : "its sums could exceed 32 bits";
}

PointwiseSum pointwise_sum(const Q8Work& work) {
  const Q8Sum& s = *work.sum;
  const int32_t moved = s.b.is_signed() ? 128 : 0;  // added to signed values, which are handled as unsigned
  return {.low = static_cast<float>(work.low() - work.result.zero),
          .high = static_cast<float>(work.high() - work.result.zero),
          .scale = s.a.scale,
          .other_zero = static_cast<float>(s.b.zero + moved),
          .other_scale = s.b.scale,
          .result_scale = s.result.scale,
          .inverse = 1 / s.result.scale};
}

std::unique_ptr<Step> make_q8_pointwise(const PlanContext& context, Q8Work work, Tensors inputs,
                                        PackedWeights& packed) {
  return std::make_unique<PointwiseStep>(context.threads, std::move(work), inputs, packed);
}

}  // namespace backplane::cpu
