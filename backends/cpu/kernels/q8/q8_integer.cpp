// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_integer.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/q8/q8_words.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kLanes = 32;                         // channels of a depthwise convolution that are computed together
constexpr int64_t kDepthwiseGrain = int64_t{1} << 15;  // minimum multiply-adds of a task
constexpr int64_t kFloatGrain = int64_t{1} << 15;      // minimum values that a task converts

bool is_depthwise(const ConvSize& size) {
  return size.groups == size.in_channels && size.in_channels == size.out_channels && size.groups > 1;
}

CLONED void widen_unsigned(const uint8_t* __restrict x, int64_t n, int32_t zero, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(int32_t{x[i]} - zero);
}
CLONED void widen_signed(const int8_t* __restrict x, int64_t n, int32_t zero, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(int32_t{x[i]} - zero);
}

// Computes all channels of one output position: the sums of products of x and w over `taps`, which are pairs of offsets
// in x and in w.
CLONED void multiply_position(const float* x, const float* w, const int64_t* taps, int64_t count, int64_t channels,
                              const Requantize& r, uint8_t* y) {
  using Vector = FloatLanes<32, 1>;
  constexpr int64_t kVectors = kLanes / Vector::kCount;
  for (int64_t next = 0; next < channels; next += kLanes) {
    const int64_t c = std::min(next, channels - kLanes);  // the last vectors may overlap those before them
    Vector sums[kVectors] = {};
    for (int64_t t = 0; t < count; ++t) {
      const float *from = x + taps[2 * t] + c, *by = w + taps[2 * t + 1] + c;
#pragma GCC unroll 4
      for (int64_t i = 0; i < kVectors; ++i) sums[i] = sums[i] + Vector::load(from + 8 * i) * Vector::load(by + 8 * i);
    }
    requantize_row(reinterpret_cast<const float*>(sums), kLanes, r.from(c), y + c);
  }
}

// Subtracts the zero point from an image's values and converts them to floats, then adds products of whole vectors of
// channels.
class Q8DepthwiseFloatStep final : public Step {
 public:
  Q8DepthwiseFloatStep(Q8Work work, const Tensor& weights, PackedWeights& packed)
      : work_(std::move(work)), taps_(work_.window.kernel_size()) {
    for (size_t c = 0; c < work_.scale.size(); ++c) shift_.push_back(work_.bias[c] * work_.scale[c]);
    pack_ = packed.get(weights, {}, [&] {
      const int64_t n = work_.size.out_channels;
      PackedWeights::Pack memory(allocate_pages(taps_ * n * int64_t{sizeof(float)}));
      auto* to = reinterpret_cast<float*>(const_cast<std::byte*>(memory.get()));  // [tap][channel]
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t t = 0; t < taps_; ++t)
          to[t * n + c] = static_cast<float>(q8_at(weights.data, weights.dtype == BP_DTYPE_INT8, c * taps_ + t) -
                                             work_.weight_zero);
      }
      return memory;
    });
  }

  int64_t scratch_bytes() const override { return image() * int64_t{sizeof(float)}; }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const int64_t n = work_.size.out_channels, positions = work_.window.out_size();
    auto* floats = static_cast<float*>(scratch);
    const auto* weights = reinterpret_cast<const float*>(pack_.get());
    for (int64_t b = 0; b < work_.size.batch; ++b) {
      const auto* x = in[0].as<const uint8_t>() + b * image();
      uint8_t* y = out[0].as<uint8_t>() + b * positions * n;
      parallel(image(), kFloatGrain, [&](int64_t begin, int64_t end) {
        if (work_.source.is_signed())
          clone_of<widen_signed>(reinterpret_cast<const int8_t*>(x) + begin, end - begin, work_.source.zero,
                                 floats + begin);
        else
          clone_of<widen_unsigned>(x + begin, end - begin, work_.source.zero, floats + begin);
      });
      parallel(positions, 1 + kDepthwiseGrain / (taps_ * n), [&](int64_t begin, int64_t end) {
        const Requantize requantize(work_, shift_, 0);
        std::vector<int64_t> at(static_cast<size_t>(2 * taps_));
        Pace pace;
        for (int64_t position = begin; position < end; ++position) {
          pace.spend(taps_ * n);
          int64_t taps = 0;
          each_tap(
              work_.window, position,
              [&](int64_t t, int64_t from) {
                at[static_cast<size_t>(2 * taps)] = from * n;
                at[static_cast<size_t>(2 * taps + 1)] = t * n;
                ++taps;
              },
              [](int64_t) {});
          clone_of<multiply_position>(floats, weights, at.data(), taps, n, requantize, y + position * n);
        }
      });
    }
    return std::nullopt;
  }

 private:
  int64_t image() const { return work_.window.in_size() * work_.size.in_channels; }

  Q8Work work_;
  int64_t taps_;
  std::vector<float> shift_;
  PackedWeights::Pack pack_;
};

}  // namespace

bool has_q8_integer() {
  return processor().has(Instructions::kAvx2);
}

const char* refuse_integer(const Q8Work& work) {
  if (!has_q8_integer()) return "the processor lacks AVX2";
  if (!work.stays_small() || (work.sum && !work.sum->stays_small())) return "its sums could exceed 32 bits";
  if (work.size.groups == 1) return refuse_words(work);
  if (work.sum) return "an addition is fused into it";
  constexpr int64_t kMostTaps = 128;  // products are below 2^17, and sums of floats are exact below 2^24
  if (!is_depthwise(work.size) || work.size.out_channels < kLanes || work.window.kernel_size() > kMostTaps)
    return "it has groups, but is not depthwise with 32 channels or more and a window of at most 128 positions";
  return nullptr;
}

std::unique_ptr<Step> make_q8_integer(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                      PackedWeights& packed) {
  if (work.size.groups == 1) return make_q8_words(context, std::move(work), inputs, packed);
  return std::make_unique<Q8DepthwiseFloatStep>(std::move(work), inputs[1], packed);
}

}  // namespace backplane::cpu
