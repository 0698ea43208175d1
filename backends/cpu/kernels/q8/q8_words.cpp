// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_words.h"

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/q8/q8_word_tile.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kChannels = kWordChannels;
constexpr int64_t kTaskWork = int64_t{1} << 18;  // minimum multiply-adds of a task
constexpr int64_t kMostTiles = 24;               // of a strip, so that their sums stay in the first-level cache
constexpr int64_t kMostPairs = 256;              // of a chunk's weights
constexpr int64_t kGrain = int64_t{1} << 15;     // minimum values that a task widens

CLONED void widen_unsigned(const uint8_t* __restrict x, int64_t n, int32_t zero, int16_t* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int16_t>(x[i] - zero);
}
CLONED void widen_signed(const int8_t* __restrict x, int64_t n, int32_t zero, int16_t* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int16_t>(x[i] - zero);
}

CLONED void requantize_tile(const int32_t* sums, int64_t positions, int64_t channels, const Requantize& r, uint8_t* y,
                            int64_t y_position) {
  for (int64_t p = 0; p < positions; ++p, sums += kChannels, y += y_position) {
    if (channels == kChannels)
      requantize_row(sums, kChannels, r, y);
    else if (channels == kChannels / 2)
      requantize_row(sums, kChannels / 2, r, y);
    else
      requantize_row(sums, channels, r, y);
  }
}

// Adds another tensor to results, which requantize_tile stored without gaps.
template <class T>
[[gnu::always_inline]] inline void add_tile(const Q8Sum& s, const T* quantized, int64_t positions, int64_t channels,
                                            const T* other, T* y, int64_t y_position) {
  for (int64_t p = 0; p < positions; ++p)
    combine<false>(s, quantized + p * kChannels, other + p * y_position, y + p * y_position, channels);
}
CLONED void add_unsigned(const Q8Sum& s, const uint8_t* quantized, int64_t positions, int64_t channels,
                         const uint8_t* other, uint8_t* y, int64_t y_position) {
  add_tile(s, quantized, positions, channels, other, y, y_position);
}
CLONED void add_signed(const Q8Sum& s, const uint8_t* quantized, int64_t positions, int64_t channels,
                       const uint8_t* other, uint8_t* y, int64_t y_position) {
  add_tile(s, reinterpret_cast<const int8_t*>(quantized), positions, channels, reinterpret_cast<const int8_t*>(other),
           reinterpret_cast<int8_t*>(y), y_position);
}

// Weights that stay in the first-level cache while all tiles of a strip read them: pairs of lines, and the lines.
struct Chunk {
  int64_t first_line, lines, first_pair, pairs;
};

// The positions that a convolution reads, along one axis.
struct Axis {
  int64_t extent;        // number of positions, padding included
  int64_t stride;        // positions from one result's first tap to the next result's
  int64_t first, apart;  // position i is position first + i · apart of the input, or padding if that is outside

  Axis(const Window& w, size_t d) {
    const bool has_one_tap = w.kernel[d] == 1;  // only every stride-th position is read
    extent = has_one_tap ? w.out[d] : (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
    stride = has_one_tap ? 1 : w.stride[d];
    apart = has_one_tap ? w.stride[d] : 1;
    first = -w.begin[d];
  }
};

class Q8WordStep final : public Step {
 public:
  Q8WordStep(int64_t threads, Q8Work work, const Tensor& weights, PackedWeights& packed)
      : work_(std::move(work)),
        axes_{Axis(work_.window, 0), Axis(work_.window, 1), Axis(work_.window, 2)},
        channels_((work_.size.in_channels + 1) / 2 * 2),
        panels_((work_.size.out_channels + kChannels - 1) / kChannels) {
    const Window& w = work_.window;
    for (size_t c = 0; c < work_.scale.size(); ++c) shift_.push_back(work_.bias[c] * work_.scale[c]);
    // Adjacent taps along the last axis are one line.
    const int64_t together = w.dilation[2] == 1 ? w.kernel[2] : 1;
    for (int64_t z = 0; z < w.kernel[0]; ++z) {
      for (int64_t y = 0; y < w.kernel[1]; ++y) {
        for (int64_t x = 0; x < w.kernel[2]; x += together)
          lines_.push_back(at(z * w.dilation[0], y * w.dilation[1], x * w.dilation[2]));
      }
    }
    pairs_ = together * channels_ / 2;
    is_flat_ = w.kernel_size() == 1;
    rows_ = is_flat_ ? 1 : w.out[0] * w.out[1];
    width_ = is_flat_ ? w.out_size() : w.out[2];
    in_row_ = (width_ + kMaxWordPositions - 1) / kMaxWordPositions;
    // A strip's inputs stay in the second-level cache while all panels are computed.
    const int64_t tiles = rows_ * in_row_, wanted = (4 * threads + panels_ - 1) / panels_;
    strips_ = std::min(std::max((tiles + kMostTiles - 1) / kMostTiles, wanted), tiles);
    const auto lines = static_cast<int64_t>(lines_.size());
    const int64_t parts = (pairs_ + kMostPairs - 1) / kMostPairs;
    if (lines * pairs_ <= kMostPairs) {
      chunks_.push_back({0, lines, 0, pairs_});
    } else {
      for (int64_t i = 0; i < lines * parts; ++i) {
        const int64_t first = i % parts * pairs_ / parts;
        chunks_.push_back({i / parts, 1, first, (i % parts + 1) * pairs_ / parts - first});
      }
    }
    const int64_t order[] = {kChannels, pairs_};
    pack_ = packed.get(
        weights, {}, [&] { return pack(weights, together); }, order);
  }

  int inplace() const override { return work_.sum ? 2 : -1; }
  int64_t scratch_bytes() const override { return image_words() * int64_t{sizeof(int16_t)}; }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const Window& w = work_.window;
    auto* words = static_cast<int16_t*>(scratch);
    const int64_t units = strips_ * panels_;
    const int64_t each = rows_ * width_ * pairs_ * static_cast<int64_t>(lines_.size()) * 2 * kChannels / strips_;
    for (int64_t image = 0; image < work_.size.batch; ++image) {
      widen(in[0].as<uint8_t>() + image * w.in_size() * work_.size.in_channels, words);
      const int64_t first = image * w.out_size() * work_.size.out_channels;
      uint8_t* y = out[0].as<uint8_t>() + first;
      const uint8_t* other = work_.sum ? in[2].as<uint8_t>() + first : nullptr;
      parallel(units, 1 + kTaskWork / (1 + each), [&](int64_t begin, int64_t end) {
        Pace pace;
        for (int64_t unit = begin; unit < end; ++unit) {
          pace.spend(each);
          multiply(words, other, y, unit / panels_, unit % panels_);
        }
      });
    }
    return std::nullopt;
  }

 private:
  int64_t at(int64_t z, int64_t y, int64_t x) const {
    return ((z * axes_[1].extent + y) * axes_[2].extent + x) * channels_;
  }
  int64_t image_words() const { return at(axes_[0].extent, 0, 0); }
  int64_t panel_words() const { return static_cast<int64_t>(lines_.size()) * pairs_ * 2 * kChannels; }

  PackedWeights::Pack pack(const Tensor& weights, int64_t together) const {
    std::shared_ptr<std::byte> memory(allocate_pages(panels_ * panel_words() * int64_t{sizeof(int16_t)}));
    auto* to = reinterpret_cast<int16_t*>(memory.get());
    std::fill_n(to, panels_ * panel_words(), int16_t{0});
    const int64_t taps = work_.window.kernel_size(), n = work_.size.out_channels, inputs = work_.size.in_channels;
    const bool is_signed = weights.dtype == BP_DTYPE_INT8;
    parallel(panels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t channels = std::min(kChannels, n - panel * kChannels);
        for (int64_t lane = 0; lane < channels; ++lane) {
          const int64_t o = panel * kChannels + lane;
          for (int64_t t = 0; t < taps; ++t) {
            for (int64_t c = 0; c < inputs; ++c) {
              const int64_t in_line = t % together * channels_ + c, pair = t / together * pairs_ + in_line / 2;
              const int64_t from = work_.transposed ? c * n + o : (o * inputs + c) * taps + t;
              to[panel * panel_words() + (pair * kChannels + lane) * 2 + in_line % 2] =
                  static_cast<int16_t>(q8_at(weights.data, is_signed, from) - work_.weight_zero);
            }
          }
        }
      }
    });
    return memory;
  }

  // Stores an image's values less their zero point, and zeros as padding.
  void widen(const uint8_t* x, int16_t* words) const {
    const Window& w = work_.window;
    const int64_t row = axes_[2].extent * channels_, inputs = work_.size.in_channels;
    parallel(axes_[0].extent * axes_[1].extent, 1 + kGrain / (1 + row), [&](int64_t begin, int64_t end) {
      Pace pace;
      for (int64_t i = begin; i < end; ++i) {
        pace.spend(row);
        int16_t* to = words + i * row;
        const int64_t z = axes_[0].first + i / axes_[1].extent * axes_[0].apart;
        const int64_t y = axes_[1].first + i % axes_[1].extent * axes_[1].apart;
        if (z < 0 || z >= w.in[0] || y < 0 || y >= w.in[1]) {
          std::fill_n(to, row, int16_t{0});
          continue;
        }
        const uint8_t* from = x + (z * w.in[1] + y) * w.in[2] * inputs;
        const Axis& axis = axes_[2];
        if (axis.apart == 1 && channels_ == inputs) {
          const int64_t first = std::clamp<int64_t>(-axis.first, 0, axis.extent);
          const int64_t last = std::clamp<int64_t>(w.in[2] - axis.first, first, axis.extent);
          std::fill(to, to + first * inputs, int16_t{0});
          widen(from + (axis.first + first) * inputs, (last - first) * inputs, to + first * inputs);
          std::fill(to + last * inputs, to + row, int16_t{0});
          continue;
        }
        for (int64_t j = 0; j < axis.extent; ++j, to += channels_) {
          const int64_t position = axis.first + j * axis.apart;
          const bool is_inside = position >= 0 && position < w.in[2];
          if (is_inside) widen(from + position * inputs, inputs, to);
          std::fill(to + (is_inside ? inputs : 0), to + channels_, int16_t{0});
        }
      }
    });
  }
  void widen(const uint8_t* x, int64_t n, int16_t* to) const {
    if (work_.source.is_signed())
      clone_of<widen_signed>(reinterpret_cast<const int8_t*>(x), n, work_.source.zero, to);
    else
      clone_of<widen_unsigned>(x, n, work_.source.zero, to);
  }

  // Computes the results of a panel of output channels in a strip of tiles.
  void multiply(const int16_t* words, const uint8_t* other, uint8_t* y, int64_t strip, int64_t panel) const {
    const Window& w = work_.window;
    const int64_t tiles = rows_ * in_row_, last = (strip + 1) * tiles / strips_;
    const int64_t n = work_.size.out_channels;
    const int64_t channel = panel * kChannels, channels = std::min(kChannels, n - channel);
    const Requantize requantize(work_, shift_, channel);
    const auto* weights = reinterpret_cast<const int16_t*>(pack_.get()) + panel * panel_words();
    int32_t all_sums[kMostTiles * kMaxWordPositions * kChannels];
    for (const Chunk& chunk : chunks_) {
      WordTile tile{.x = nullptr,
                    .x_position = axes_[2].stride * channels_,
                    .lines = &lines_[static_cast<size_t>(chunk.first_line)],
                    .line_count = chunk.lines,
                    .pairs = chunk.pairs,
                    .weights = weights + (chunk.first_line * pairs_ + chunk.first_pair) * 2 * kChannels,
                    .begins = &chunk == &chunks_.front(),
                    .sums = all_sums};
      for (int64_t t = strip * tiles / strips_; t < last; ++t, tile.sums += kMaxWordPositions * kChannels) {
        const Part part = part_of(t);
        const int64_t row =
            is_flat_ ? 0 : at(part.row / w.out[1] * axes_[0].stride, part.row % w.out[1] * axes_[1].stride, 0);
        tile.x = words + row + part.first * tile.x_position + 2 * chunk.first_pair;
        word_kernel(part.positions)(tile);
      }
    }
    const int32_t* sums = all_sums;
    for (int64_t t = strip * tiles / strips_; t < last; ++t, sums += kMaxWordPositions * kChannels) {
      const Part part = part_of(t);
      const int64_t to = (part.row * width_ + part.first) * n + channel;
      if (!work_.sum) {
        clone_of<requantize_tile>(sums, part.positions, channels, requantize, y + to, n);
        continue;
      }
      uint8_t quantized[kMaxWordPositions * kChannels];
      clone_of<requantize_tile>(sums, part.positions, channels, requantize, quantized, kChannels);
      if (work_.result.is_signed())
        clone_of<add_signed>(*work_.sum, quantized, part.positions, channels, other + to, y + to, n);
      else
        clone_of<add_unsigned>(*work_.sum, quantized, part.positions, channels, other + to, y + to, n);
    }
  }

  // The positions of a tile.
  struct Part {
    int64_t row, first, positions;
  };
  Part part_of(int64_t tile) const {
    const int64_t in_row = tile % in_row_, first = in_row * width_ / in_row_;
    return {tile / in_row_, first, (in_row + 1) * width_ / in_row_ - first};
  }

  Q8Work work_;
  Axis axes_[kSpatial];
  int64_t channels_;  // input channels, rounded up to an even number
  int64_t panels_;    // of kChannels output channels
  std::vector<float> shift_;
  std::vector<int64_t> lines_;
  std::vector<Chunk> chunks_;
  int64_t pairs_ = 0;
  bool is_flat_ = false;             // all positions are one row
  int64_t rows_ = 1, width_ = 1;     // rows of results, and positions in each
  int64_t in_row_ = 1, strips_ = 1;  // tiles in a row; strips of tiles in an image
  PackedWeights::Pack pack_;
};

}  // namespace

const char* refuse_words(const Q8Work& work) {
  // An image with its padding may be so much larger than the tensors.
  constexpr double kMostPadding = 4, kLeast = 1 << 16;
  const Window& w = work.window;
  auto words = static_cast<double>(work.size.in_channels);
  for (size_t d = 0; d < kSpatial; ++d) words *= static_cast<double>(Axis(w, d).extent);
  const double elements = static_cast<double>(w.in_size()) * static_cast<double>(work.size.in_channels) +
                          static_cast<double>(w.out_size()) * static_cast<double>(work.size.out_channels);
  return words > kMostPadding * elements + kLeast ? "it reads mostly padding" : nullptr;
}

std::unique_ptr<Step> make_q8_words(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                    PackedWeights& packed) {
  return std::make_unique<Q8WordStep>(context.threads, std::move(work), inputs[1], packed);
}

}  // namespace backplane::cpu
