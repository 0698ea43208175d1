// SPDX-License-Identifier: Apache-2.0
#include "kernels/onednn/reorder.h"

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/simd/clones.h"
#include "runtime/format.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

// Up to this number of floats, the loops below take less time than oneDNN takes to prepare a reorder.
constexpr int64_t kFewFloats = 4096;

template <int64_t kLanes>
void to_blocked(const float* from, float* to, int64_t channels, int64_t positions) {
  for (int64_t c = 0; c < channels; c += kLanes, from += kLanes * positions, to += kLanes * positions) {
    const int64_t count = std::min(kLanes, channels - c);
    for (int64_t p = 0; p < positions; ++p) {
      float lanes[kLanes] = {};
      for (int64_t l = 0; l < count; ++l) lanes[l] = from[l * positions + p];
      for (int64_t l = 0; l < kLanes; ++l) to[p * kLanes + l] = lanes[l];
    }
  }
}

template <int64_t kLanes>
void to_dense(const float* from, float* to, int64_t channels, int64_t positions) {
  for (int64_t c = 0; c < channels; c += kLanes, from += kLanes * positions, to += kLanes * positions) {
    const int64_t count = std::min(kLanes, channels - c);
    for (int64_t l = 0; l < count; ++l) {
      for (int64_t p = 0; p < positions; ++p) to[l * positions + p] = from[p * kLanes + l];
    }
  }
}

// Reorders floats between dense and blocked. Each call of onednn_reorder takes consecutive blocks of channels of one
// image, which are contiguous in both formats.
class Reorder final : public Step {
 public:
  Reorder(const Shape& shape, Format from, Format to) : from_(from), to_(to), alias_(same_bytes(shape) ? 0 : -1) {
    batch_ = shape[0];
    channels_ = shape[1];
    positions_ = shape.elements(2, shape.rank());
    blocks_ = (channels_ + channel_block() - 1) / channel_block();
  }
  int alias() const override { return alias_; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    const int64_t block = channel_block();
    parallel(batch_ * blocks_, 1 + kCheapGrain / (block * positions_), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        int64_t image = begin / blocks_;
        int64_t first = begin % blocks_;
        int64_t last = std::min(blocks_, first + end - begin);
        int64_t channels = std::min(channels_, last * block) - first * block;
        int64_t dense = (image * channels_ + first * block) * positions_;
        int64_t blocked = begin * block * positions_;
        const float* from = in[0].as<float>() + (from_ == Format::kDense ? dense : blocked);
        float* to = out[0].as<float>() + (to_ == Format::kDense ? dense : blocked);
        reorder(from, to, channels);
        begin += last - first;
      }
    });
    return std::nullopt;
  }

 private:
  void reorder(const float* from, float* to, int64_t channels) const {
    if (channels * positions_ > kFewFloats) {
      const dnnl::memory::dims dims{1, channels, positions_};
      onednn_reorder(layout_of(dims, from_), from, layout_of(dims, to_), to);
    } else if (to_ == Format::kBlocked) {
      channel_block() == 16 ? to_blocked<16>(from, to, channels, positions_)
                            : to_blocked<8>(from, to, channels, positions_);
    } else {
      channel_block() == 16 ? to_dense<16>(from, to, channels, positions_)
                            : to_dense<8>(from, to, channels, positions_);
    }
  }

  Format from_, to_;
  int alias_;
  int64_t batch_, channels_, positions_, blocks_;
};

// Interleaves three channels, as of an RGB image.
CLONED void interleave_3(const uint8_t* __restrict r, const uint8_t* __restrict g, const uint8_t* __restrict b,
                         uint8_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[3 * i] = r[i];
    to[3 * i + 1] = g[i];
    to[3 * i + 2] = b[i];
  }
}

// Reorders bytes between dense and channels-last. A task is a strip of positions of one image.
class ByteReorder final : public Step {
 public:
  ByteReorder(const Shape& shape, Format from)
      : to_last_(from == Format::kDense),
        batch_(shape[0]),
        channels_(shape[1]),
        positions_(shape.elements(2, shape.rank())) {}
  int alias() const override { return channels_ == 1 || positions_ == 1 ? 0 : -1; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    constexpr int64_t kStrip = 256;
    const int64_t strips = (positions_ + kStrip - 1) / kStrip;
    parallel(batch_ * strips, 1 + kCheapGrain / (kStrip * channels_), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t image = task / strips * channels_ * positions_;
        const int64_t first = task % strips * kStrip, last = std::min(positions_, first + kStrip);
        const uint8_t* from = in[0].as<uint8_t>() + image;
        uint8_t* to = out[0].as<uint8_t>() + image;
        if (to_last_ && channels_ == 3) {
          clone_of<interleave_3>(from + first, from + positions_ + first, from + 2 * positions_ + first, to + first * 3,
                                 last - first);
          continue;
        }
        for (int64_t p = first; p < last; ++p) {
          for (int64_t c = 0; c < channels_; ++c) {
            if (to_last_)
              to[p * channels_ + c] = from[c * positions_ + p];
            else
              to[c * positions_ + p] = from[p * channels_ + c];
          }
        }
      }
    });
    return std::nullopt;
  }

 private:
  bool to_last_;
  int64_t batch_, channels_, positions_;
};

}  // namespace

std::unique_ptr<Step> make_reorder(const Shape& shape, Format from, Format to) {
  if (from == Format::kChannelsLast || to == Format::kChannelsLast) return std::make_unique<ByteReorder>(shape, from);
  return std::make_unique<Reorder>(shape, from, to);
}

}  // namespace backplane::cpu
