// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_depthwise.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/q8/q8_depthwise_tile.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

// Minimum multiply-adds of a task.
constexpr int64_t kTaskWork = int64_t{1} << 18;
constexpr int64_t kTaps = 3, kQuad = 4;
constexpr int64_t kMaxWidth = 64;

// Whether a tile computes 2x2 positions, which share most of their inputs. This requires strides of 1; with other
// strides, a tile computes one position.
bool shares_inputs(const Window& w) {
  return w.stride[1] == 1 && w.stride[2] == 1;
}

class DepthwiseStep final : public Step {
 public:
  DepthwiseStep(int64_t threads, Q8Work conv, Tensors inputs, PackedWeights& packed)
      : conv_(std::move(conv)),
        channels_(conv_.size.out_channels),
        positions_(shares_inputs(conv_.window) ? 2 : 1),
        width_(channels_ >= kMaxWidth ? kMaxWidth : kMaxWidth / 2),
        kernel_(depthwise_kernel(positions_, width_, conv_.source.is_signed())) {
    const Window& w = conv_.window;
    chunks_ = (channels_ + width_ - 1) / width_;
    bands_ = w.out[1] / positions_;
    // A section is the chunks of channels that one task computes. The last two chunks may overlap and are always in the
    // same section, so that two threads never write the same results.
    const int64_t wanted = 8 * threads, bands = conv_.size.batch * bands_;
    sections_ = std::clamp<int64_t>((wanted + bands - 1) / bands, 1, std::max<int64_t>(1, chunks_ / 2));
    pack_chunk_ = width_ * (3 * int64_t{sizeof(float)} + kTaps * positions_ * kQuad);
    padding_.assign(static_cast<size_t>((w.in[2] + kQuad) * channels_), static_cast<uint8_t>(conv_.source.zero));
    low_ = conv_.low();
    high_ = conv_.high();
    // The range of tiles in a row whose input columns are all within the image.
    const int64_t reach = kTaps + positions_ - 1;
    const int64_t tiles = w.out[2] / positions_, step = positions_ * w.stride[2];
    first_inside_ = std::min((w.begin[2] + step - 1) / step, tiles);
    const int64_t last_start = w.in[2] + w.begin[2] - reach;  // last column of the padded row where a tile may start
    last_inside_ = last_start < 0 ? first_inside_ : std::clamp(last_start / step + 1, first_inside_, tiles);
    pack_ = packed.get(inputs[1], {}, [&] { return pack(inputs[1]); });
  }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    const Window& w = conv_.window;
    const int64_t units = bands_ * sections_;
    const int64_t each = positions_ * w.out[2] * w.kernel_size() * channels_ / sections_;
    parallel(conv_.size.batch * units, 1 + kTaskWork / std::max<int64_t>(1, each), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / units, band = i % units / sections_, section = i % sections_;
        const auto* x = in[0].as<uint8_t>() + image * w.in_size() * channels_;
        auto* y = out[0].as<uint8_t>() + image * w.out_size() * channels_;
        run_rows(x, band * positions_, y, section);
        // If the number of rows is odd, the last row is computed together with the row above it, which is computed
        // again.
        if (band == bands_ - 1 && bands_ * positions_ != w.out[1]) run_rows(x, w.out[1] - positions_, y, section);
      }
    });
    return std::nullopt;
  }

 private:
  PackedWeights::Pack pack(const Tensor& weights) const {
    const Window& w = conv_.window;
    std::shared_ptr<std::byte> result(allocate_pages(chunks_ * pack_chunk_));
    const bool is_signed = weights.dtype == BP_DTYPE_INT8;
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const Q8Pack to(result.get() + chunk * pack_chunk_, width_);
      for (int64_t lane = 0; lane < width_; ++lane) {
        const int64_t channel = first_channel(chunk) + lane_channel(lane, width_);
        int32_t sum = 0;
        for (int64_t row = 0; row < kTaps; ++row) {
          for (int64_t i = 0; i < positions_ * kQuad; ++i) {
            const int64_t position = i / kQuad, column = i % kQuad - position;
            int32_t weight = 0;
            if (column >= 0 && column < kTaps)
              weight =
                  q8_at(weights.data, is_signed, channel * w.kernel_size() + row * kTaps + column) - conv_.weight_zero;
            to.weights[((row * positions_ + position) * width_ + lane) * kQuad + i % kQuad] =
                static_cast<int8_t>(weight);
            if (position == 0) sum += weight;
          }
        }
        to.set(lane, conv_, channel, sum);
      }
    }
    return result;
  }

  int64_t first_channel(int64_t chunk) const { return std::min(chunk * width_, channels_ - width_); }

  // Computes `positions_` rows of the result, beginning with `row`, for the channels of one section.
  void run_rows(const uint8_t* x, int64_t row, uint8_t* y, int64_t section) const {
    const Window& w = conv_.window;
    DepthwiseTile tile{.rows = {},
                       .x_column = channels_,
                       .x_step = positions_ * w.stride[2] * channels_,
                       .count = last_inside_ - first_inside_,
                       .pack = nullptr,
                       .y = nullptr,
                       .y_position = channels_,
                       .y_row = w.out[2] * channels_,
                       .zero = conv_.result.zero,
                       .low = low_,
                       .high = high_,
                       .result_signed = conv_.result.is_signed()};
    const int64_t rows = kTaps + positions_ - 1, top = row * w.stride[1] - w.begin[1];
    const uint8_t* begins[4];  // starts of the input rows; padding_ for rows outside the image
    for (int64_t r = 0; r < rows; ++r)
      begins[r] = top + r >= 0 && top + r < w.in[1] ? x + (top + r) * w.in[2] * channels_ : padding_.data();
    for (int64_t c = section * chunks_ / sections_; c < (section + 1) * chunks_ / sections_; ++c) {
      const int64_t channel = first_channel(c);
      uint8_t* to = y + row * w.out[2] * channels_ + channel;
      tile.pack = pack_.get() + c * pack_chunk_;
      if (tile.count > 0) {
        const int64_t column = first_inside_ * positions_ * w.stride[2] - w.begin[2];
        for (int64_t r = 0; r < rows; ++r) tile.rows[r] = begins[r] + column * channels_ + channel;
        tile.y = to + first_inside_ * positions_ * channels_;
        kernel_(tile);
      }
      for (int64_t i = 0; i < first_inside_; ++i) run_edge(tile, begins, channel, i * positions_, to);
      for (int64_t position = last_inside_ * positions_; position < w.out[2]; position += positions_)
        run_edge(tile, begins, channel, std::min(position, w.out[2] - positions_), to);
    }
  }

  // Computes one tile from a copy of its input. This is for tiles that read columns of padding, and for the end of a
  // row of odd width, whose last tile computes the position before the last one again.
  void run_edge(const DepthwiseTile& inside, const uint8_t* const* begins, int64_t channel, int64_t position,
                uint8_t* to) const {
    const Window& w = conv_.window;
    alignas(64) uint8_t copies[4][kQuad][kMaxWidth];
    DepthwiseTile tile = inside;
    for (int64_t r = 0; r < kTaps + positions_ - 1; ++r) {
      for (int64_t i = 0; i < kQuad; ++i) {
        const int64_t column = position * w.stride[2] - w.begin[2] + i;
        const bool has = column >= 0 && column < w.in[2];
        std::memcpy(copies[r][i], has ? begins[r] + column * channels_ + channel : padding_.data(),
                    static_cast<size_t>(width_));
      }
      tile.rows[r] = copies[r][0];
    }
    tile.x_column = kMaxWidth;
    tile.count = 1;
    tile.y = to + position * channels_;
    kernel_(tile);
  }

  Q8Work conv_;
  int64_t channels_, positions_, width_;
  DepthwiseKernel kernel_;
  int64_t chunks_ = 0, sections_ = 1, bands_ = 0, pack_chunk_ = 0;
  int64_t first_inside_ = 0, last_inside_ = 0;  // the tiles of a row that read no padding
  int32_t low_ = 0, high_ = 0;
  std::vector<uint8_t> padding_;  // an input row whose values are all the zero point
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_depthwise(const Q8Work& work) {
  const Window& w = work.window;
  if (work.sum) return "an addition is fused into it";
  if (depthwise_kernel(1, kMaxWidth, false) == nullptr) return "AVX-512 VNNI is not available";
  if (work.size.groups != work.size.in_channels || work.size.groups != work.size.out_channels)
    return "it is not depthwise";
  if (work.size.groups < kMaxWidth / 2) return "it has fewer than 32 channels";
  const bool flat = w.kernel[0] == 1 && w.in[0] == 1 && w.out[0] == 1 && w.begin[0] == 0;
  if (!flat || w.kernel[1] != kTaps || w.kernel[2] != kTaps) return "its window is not 3x3";
  if (w.dilation != Spatial{1, 1, 1}) return "its window is dilated";
  if (shares_inputs(w) && (w.out[1] < 2 || w.out[2] < 2)) return "its result has fewer than 2x2 positions";
  return work.stays_small() ? nullptr : "its sums could exceed 32 bits";
}

std::unique_ptr<Step> make_q8_depthwise(const PlanContext& context, Q8Work conv, Tensors inputs,
                                        PackedWeights& packed) {
  return std::make_unique<DepthwiseStep>(context.threads, std::move(conv), inputs, packed);
}

}  // namespace backplane::cpu
