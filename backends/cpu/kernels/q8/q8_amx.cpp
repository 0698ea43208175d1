// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_amx.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/q8/q8_amx_tile.h"
#include "kernels/q8/q8_pointwise.h"
#include "kernels/simd/amx.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kTaskWork = int64_t{1} << 21;  // minimum multiply-adds of a task

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

class AmxStep final : public Step {
 public:
  AmxStep(int64_t threads, Q8Work work, Tensors inputs, PackedWeights& packed)
      : work_(std::move(work)),
        in_channels_(work_.size.in_channels),
        out_channels_(work_.size.out_channels),
        positions_(work_.size.batch * work_.window.out_size()),
        steps_(ceil_div(in_channels_, kAmxInputs)),
        chunks_(ceil_div(out_channels_, kAmxChannels)),
        pack_chunk_(kAmxChannels * (3 * int64_t{sizeof(float)} + steps_ * kAmxInputs)),
        tile_(ceil_div(positions_, ceil_div(positions_, amx::kTileRows))),
        blocks_(ceil_div(positions_, 2 * tile_)),
        flat_(work_.window.stride == Spatial{1, 1, 1} && work_.window.in == work_.window.out),
        threads_(threads),
        kernel_(amx_kernel(work_.sum.has_value(), work_.source.is_signed())) {
    if (work_.sum) sum_ = pointwise_sum(work_);
    share_out();
    const int64_t bytes = chunks_ * pack_chunk_;
    // PackedWeights keeps this pack and that of q8_pointwise.cpp for the same weights. The layout distinguishes this
    // one, as the other has none.
    const dnnl::memory::desc layout({bytes}, dnnl::memory::data_type::s8, dnnl::memory::format_tag::a);
    pack_ = packed.get(inputs[1], {layout}, [&] { return pack(inputs[1], bytes); });
  }

  int inplace() const override { return work_.sum ? 2 : -1; }
  int64_t scratch_bytes() const override { return threads_ * buffer_bytes(); }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const int64_t units = sections_ * strips_;
    const int64_t each = positions_ * in_channels_ * out_channels_ / units;
    parallel(units, 1 + kTaskWork / std::max<int64_t>(1, each), [&](int64_t begin, int64_t end) {
      const amx::TileRegisters registers(tile_);
      auto* buffer = static_cast<uint8_t*>(scratch) + thread_index() * buffer_bytes();
      for (int64_t i = begin; i < end; ++i) {
        const int64_t section = by_channels_ ? i / strips_ : i % sections_;
        const int64_t strip = by_channels_ ? i % strips_ : i / sections_;
        compute(in, out[0].as<uint8_t>(), buffer, section, strip);
      }
    });
    return std::nullopt;
  }

 private:
  int64_t row_bytes() const { return steps_ * kAmxInputs; }
  // The size of one thread's copy of the inputs of a group of blocks.
  int64_t buffer_bytes() const { return align_up(group_ * 2 * tile_ * row_bytes()); }

  // A task computes a section (some chunks of output channels) of a strip (some blocks of positions). Threads compute
  // different sections if the weights are larger than the input, otherwise different strips. All threads then read all
  // of the smaller operand, but only a part of the larger one.
  void share_out() {
    const Processor& p = processor();
    const int64_t wanted = threads_ == 1 ? 1 : 4 * threads_;  // the intended number of tasks
    const int64_t block_bytes = 2 * tile_ * row_bytes();
    const int64_t fitting =
        std::max<int64_t>(1, p.l2_bytes / 4 / block_bytes);  // blocks whose inputs stay in the second-level cache
    by_channels_ = out_channels_ > positions_;
    if (by_channels_) {
      sections_ = std::min(chunks_, wanted);
      strips_ = std::clamp(ceil_div(wanted, sections_), ceil_div(blocks_, fitting), blocks_);
    } else {
      strips_ = std::clamp(wanted, ceil_div(blocks_, fitting), blocks_);
      sections_ = std::min(ceil_div(wanted, strips_), chunks_);
    }
    // A group of blocks is multiplied by all weights of the section. If these fit in the second-level cache, the inputs
    // of a group fit in the first-level cache; otherwise the group is the whole strip, so that the weights are read
    // only once.
    const int64_t section_bytes = ceil_div(chunks_, sections_) * pack_chunk_;
    group_ = section_bytes > p.l2_bytes / 2 ? ceil_div(blocks_, strips_)
                                            : std::clamp<int64_t>(p.l1_bytes / 2 / block_bytes, 1, fitting);
  }

  void pack_chunk(const Tensor& weights, int64_t chunk, std::byte* to) const {
    const bool is_signed = weights.dtype == BP_DTYPE_INT8;
    const Q8Pack pack(to, kAmxChannels);
    std::memset(to, 0, static_cast<size_t>(pack_chunk_));
    for (int64_t lane = 0; lane < std::min(kAmxChannels, out_channels_ - chunk * kAmxChannels); ++lane) {
      const int64_t channel = chunk * kAmxChannels + lane;
      int8_t* column =
          pack.weights + lane / 32 * steps_ * 32 * kAmxInputs + lane / 16 % 2 * 16 * kAmxInputs + lane % 16 * 4;
      int32_t sum = 0;
      for (int64_t i = 0; i < in_channels_; ++i) {
        const int64_t at = work_.transposed ? i * out_channels_ + channel : channel * in_channels_ + i;
        const int32_t weight = q8_at(weights.data, is_signed, at) - work_.weight_zero;
        column[i / kAmxInputs * 32 * kAmxInputs + i % kAmxInputs / 4 * 64 + i % 4] = static_cast<int8_t>(weight);
        sum += weight;
      }
      pack.set(lane, work_, channel, sum);
      // AMX multiplies signed inputs as they are: undo the 128 that Q8Pack::set assumes to be added to them.
      if (work_.source.is_signed()) pack.starts[lane] += 128 * sum;
    }
  }

  PackedWeights::Pack pack(const Tensor& weights, int64_t bytes) const {
    std::shared_ptr<std::byte> result(allocate_pages(bytes));
    parallel(chunks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) pack_chunk(weights, chunk, result.get() + chunk * pack_chunk_);
    });
    return result;
  }

  const uint8_t* input_of(const uint8_t* x, int64_t position) const {
    const Window& w = work_.window;
    const int64_t image = position / w.out_size(), in_image = position % w.out_size();
    const int64_t z = in_image / (w.out[1] * w.out[2]) * w.stride[0], y = in_image / w.out[2] % w.out[1] * w.stride[1];
    return x + (image * w.in_size() + (z * w.in[1] + y) * w.in[2] + in_image % w.out[2] * w.stride[2]) * in_channels_;
  }

  void compute(Tensors in, uint8_t* y, uint8_t* buffer, int64_t section, int64_t strip) const {
    const int64_t first_chunk = section * chunks_ / sections_, last_chunk = (section + 1) * chunks_ / sections_;
    const int64_t first_block = strip * blocks_ / strips_, last_block = (strip + 1) * blocks_ / strips_;
    AmxBlock block{.x = {},
                   .x_position = 0,
                   .tiles = 0,
                   .second = 0,
                   .steps = steps_,
                   .pack = nullptr,
                   .channels = 0,
                   .first = 0,
                   .last = 0,
                   .y = nullptr,
                   .y_position = out_channels_,
                   .zero = work_.result.zero,
                   .low = work_.low(),
                   .high = work_.high(),
                   .result_signed = work_.result.is_signed(),
                   .sum = nullptr,
                   .other = nullptr};
    if (work_.sum) {
      const Quantization& to = work_.sum->result;
      block.zero = to.zero;
      block.low = work_.sum->rectifies ? to.zero : to.low();
      block.high = to.high();
      block.sum = &sum_;
    }
    for (int64_t group = first_block; group < last_block; group += group_) {
      const int64_t end = std::min(last_block, group + group_);
      const bool direct = reads_directly(end);
      if (!direct) gather(in[0].as<uint8_t>(), group * 2 * tile_, std::min(positions_, end * 2 * tile_), buffer);
      for (int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
        block.pack = pack_.get() + chunk * pack_chunk_;
        block.channels = std::min(kAmxChannels, out_channels_ - chunk * kAmxChannels);
        for (int64_t b = group; b < end; ++b) {
          const int64_t position = b * 2 * tile_;
          const int64_t at = position * out_channels_ + chunk * kAmxChannels;
          block.y = y + at;
          if (work_.sum) block.other = in[2].as<uint8_t>() + at;
          if (direct)
            set_tiles(block, in[0].as<uint8_t>() + position * in_channels_, in_channels_, position, positions_ - tile_);
          else
            set_tiles(block, buffer + (b - group) * 2 * tile_ * row_bytes(), row_bytes(), position, positions_);
          kernel_(block);
        }
      }
    }
  }

  // Whether the inputs of the blocks before `end` can be read in place: their positions are evenly spaced, and enough
  // input follows the last one for whole steps to be read.
  bool reads_directly(int64_t end) const {
    const int64_t last = std::min(positions_, end * 2 * tile_);
    return flat_ && (positions_ - last + 1) * in_channels_ >= row_bytes();
  }

  void gather(const uint8_t* x, int64_t first, int64_t last, uint8_t* to) const {
    for (int64_t position = first; position < last; ++position, to += row_bytes())
      std::memcpy(to, input_of(x, position), static_cast<size_t>(in_channels_));
  }

  // Sets the tiles of the block that begins at `position`, whose inputs are at `x`. A tile that would begin after
  // position `latest` begins at it instead, so that it does not read beyond the input.
  void set_tiles(AmxBlock& block, const uint8_t* x, int64_t x_position, int64_t position, int64_t latest) const {
    const int64_t count = std::min(positions_ - position, 2 * tile_);
    const int64_t first = std::min<int64_t>(0, latest - position), second = std::min(tile_, latest - position);
    block.x_position = x_position;
    block.x[0] = x + first * x_position;
    block.x[1] = x + second * x_position;
    block.tiles = count > tile_ ? 2 : 1;
    block.second = second - first;
    block.first = -first;
    block.last = count - first;
  }

  Q8Work work_;
  int64_t in_channels_, out_channels_, positions_, steps_, chunks_, pack_chunk_;
  int64_t tile_;    // positions of a tile
  int64_t blocks_;  // blocks of two tiles each
  bool flat_;
  int64_t threads_;
  AmxKernel kernel_;
  PointwiseSum sum_{};
  bool by_channels_ = false;
  int64_t sections_ = 1, strips_ = 1, group_ = 1;
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_amx(const Q8Work& work) {
  const Window& w = work.window;
  if (amx_kernel(false, false) == nullptr) return "AMX is not available";
  if (work.size.groups != 1) return "it has groups";
  if (w.kernel_size() != 1) return "its window is larger than 1x1";
  if (work.reads_padding()) return "it reads padding";
  return work.stays_small() && (!work.sum || work.sum->stays_small()) ? nullptr : "its sums could exceed 32 bits";
}

std::unique_ptr<Step> make_q8_amx(const PlanContext& context, Q8Work work, Tensors inputs, PackedWeights& packed) {
  return std::make_unique<AmxStep>(context.threads, std::move(work), inputs, packed);
}

}  // namespace backplane::cpu
