// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_integer.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/integer/integer_gemm.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kLanes = 32;                         // channels of a depthwise convolution that are computed together
constexpr int64_t kDepthwiseGrain = int64_t{1} << 15;  // minimum multiply-adds of a task
constexpr int64_t kFloatGrain = int64_t{1} << 15;      // minimum values that a task converts

bool is_depthwise(const ConvSize& size) {
  return size.groups == size.in_channels && size.in_channels == size.out_channels && size.groups > 1;
}

// Converts sums to quantized values: sum · scale + shift in steps of the result, rounded, plus the zero point.
struct Requantize {
  const float *scale, *shift;  // per output channel
  float low, high;             // limits, relative to the zero point
  int32_t zero;
};

// Bytes may alias everything, so that without `restrict` the loop would not be vectorized.
template <class T>
[[gnu::always_inline]] inline void requantize_row(const T* __restrict sums, int64_t n, const Requantize& r,
                                                  uint8_t* __restrict y) {
  const float* __restrict scale = r.scale, * __restrict shift = r.shift;
  const float low = r.low, high = r.high;
  const int32_t zero = r.zero;
  for (int64_t c = 0; c < n; ++c) {
    const float steps = static_cast<float>(sums[c]) * scale[c] + shift[c];
    const float above = steps > low ? steps : low;
    y[c] = static_cast<uint8_t>(static_cast<int32_t>(nearest(above < high ? above : high)) + zero);
  }
}
CLONED void requantize_ints(const int32_t* sums, int64_t n, const Requantize& r, uint8_t* y) {
  requantize_row(sums, n, r, y);
}

CLONED void widen_unsigned(const uint8_t* __restrict x, int64_t n, int32_t zero, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(int32_t{x[i]} - zero);
}
CLONED void widen_signed(const int8_t* __restrict x, int64_t n, int32_t zero, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(int32_t{x[i]} - zero);
}

// Computes kLanes channels of one output position: the sum of products of x and w over `taps`, which are pairs of
// positions in x and in w.
CLONED void multiply_position(const float* x, const float* w, const int64_t* taps, int64_t count, const Requantize& r,
                              uint8_t* y) {
  using Vector = FloatLanes<32, 1>;
  constexpr int64_t kVectors = kLanes / Vector::kCount;
  Vector sums[kVectors] = {};
  for (int64_t t = 0; t < count; ++t) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kVectors; ++i)
      sums[i] = sums[i] + Vector::load(x + taps[2 * t] + 8 * i) * Vector::load(w + taps[2 * t + 1] + 8 * i);
  }
  requantize_row(reinterpret_cast<const float*>(sums), kLanes, r, y);
}

// The base of the two steps below. It holds the constants of the results.
class Q8IntegerStep : public Step {
 public:
  explicit Q8IntegerStep(Q8Work work) : work_(std::move(work)), taps_(work_.window.kernel_size()) {
    for (size_t c = 0; c < work_.scale.size(); ++c) shift_.push_back(work_.bias[c] * work_.scale[c]);
  }

 protected:
  Requantize requantize(int64_t channel) const {
    const int32_t zero = work_.result.zero;
    return {work_.scale.data() + channel, shift_.data() + channel, static_cast<float>(work_.low() - zero),
            static_cast<float>(work_.high() - zero), zero};
  }

  Q8Work work_;
  int64_t taps_;
  std::vector<float> shift_;
};

// Each output position is a row of a matrix product.
class Q8ProductStep final : public Q8IntegerStep {
 public:
  Q8ProductStep(int threads, Q8Work work, const Tensor& weights, PackedWeights& packed)
      : Q8IntegerStep(std::move(work)), products_(threads, size_of(work_)) {
    const int64_t n = products_.size().n, each = work_.size.in_channels;
    std::vector<uint8_t> matrix;  // [tap][input channel][output channel]
    products_.pack(packed, weights, 1, [&](int64_t) -> const void* {
      if (work_.transposed) return weights.data;
      matrix.resize(static_cast<size_t>(n * each * taps_));
      const auto* from = weights.as<const uint8_t>();
      for (int64_t o = 0; o < n; ++o) {
        for (int64_t c = 0; c < each; ++c) {
          for (int64_t t = 0; t < taps_; ++t)
            matrix[static_cast<size_t>((t * each + c) * n + o)] = from[(o * each + c) * taps_ + t];
        }
      }
      return matrix.data();
    });
  }

  int64_t scratch_bytes() const override { return sums_bytes() + products_.scratch_bytes(); }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    const int64_t each = work_.size.in_channels, n = products_.size().n, positions = products_.size().m;
    const int32_t x_zero = work_.source.zero, w_zero = work_.weight_zero;
    auto* sums = static_cast<int32_t*>(scratch);
    const bool is_flat = taps_ == 1 && work_.window.stride == Spatial{1, 1, 1} && work_.window.in == work_.window.out;
    const auto row_at = [&](int64_t image, int64_t position, uint8_t* buffer) -> const uint8_t* {
      const auto* x = in[0].as<const uint8_t>() + image * work_.window.in_size() * each;
      if (is_flat) return x + position * each;
      const uint8_t* only = buffer;
      each_tap(
          work_.window, position,
          [&](int64_t t, int64_t at) {
            if (taps_ == 1)
              only = x + at * each;
            else
              std::memcpy(buffer + t * each, x + at * each, static_cast<size_t>(each));
          },
          [&](int64_t t) { std::memset(buffer + t * each, x_zero, static_cast<size_t>(each)); });
      return only;
    };
    products_.run({work_.source.is_signed(), in[1], {{&x_zero, 1}, {&w_zero, 1}}, sums, 0}, row_at,
                  static_cast<std::byte*>(scratch) + sums_bytes(), [&](const SumsPart& part) {
                    uint8_t* y = out[0].as<uint8_t>() + part.batch * positions * n;
                    const Requantize r = requantize(part.first_column);
                    for (int64_t i = part.first_row; i < part.last_row; ++i) {
                      const int64_t at = i * n + part.first_column;
                      clone_of<requantize_ints>(sums + at, part.last_column - part.first_column, r, y + at);
                    }
                  });
    return std::nullopt;
  }

 private:
  static MatMulSize size_of(const Q8Work& work) {
    MatMulSize size{
        work.window.out_size(), work.size.out_channels, work.size.in_channels * work.window.kernel_size(), {}, {}, {}};
    size.a_offsets.add_axis(work.size.batch, work.size.batch);
    size.b_offsets.add_axis(work.size.batch, 1);
    return size;
  }
  int64_t sums_bytes() const { return align_up(products_.size().m * products_.size().n * int64_t{sizeof(int32_t)}); }

  IntegerGemm products_;
};

// Subtracts the zero point from an image's values and converts them to floats, then adds products of whole vectors of
// channels.
class Q8DepthwiseFloatStep final : public Q8IntegerStep {
 public:
  Q8DepthwiseFloatStep(Q8Work work, const Tensor& weights, PackedWeights& packed) : Q8IntegerStep(std::move(work)) {
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
        std::vector<int64_t> at(static_cast<size_t>(2 * taps_));
        for (int64_t position = begin; position < end; ++position) {
          int64_t taps = 0;
          each_tap(
              work_.window, position,
              [&](int64_t t, int64_t from) {
                at[static_cast<size_t>(2 * taps)] = from * n;
                at[static_cast<size_t>(2 * taps + 1)] = t * n;
                ++taps;
              },
              [](int64_t) {});
          for (int64_t c = 0; c < n; c += kLanes) {
            const int64_t first = std::min(c, n - kLanes);  // the last vectors may overlap those before them
            clone_of<multiply_position>(floats + first, weights + first, at.data(), taps, requantize(first),
                                        y + position * n + first);
          }
        }
      });
    }
    return std::nullopt;
  }

 private:
  int64_t image() const { return work_.window.in_size() * work_.size.in_channels; }

  PackedWeights::Pack pack_;
};

}  // namespace

bool has_q8_integer() {
  return processor().has(Instructions::kAvx2);
}

const char* refuse_integer(const Q8Work& work) {
  if (!has_q8_integer()) return "the processor lacks AVX2";
  if (work.sum) return "an addition is fused into it";
  if (!work.stays_small()) return "its sums could exceed 32 bits";
  if (work.size.groups == 1) return nullptr;
  constexpr int64_t kMostTaps = 128;  // products are below 2^17, and sums of floats are exact below 2^24
  if (!is_depthwise(work.size) || work.size.out_channels < kLanes || work.window.kernel_size() > kMostTaps)
    return "it has groups, but is not depthwise with 32 channels or more and a window of at most 128 positions";
  return nullptr;
}

std::unique_ptr<Step> make_q8_integer(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                      PackedWeights& packed) {
  if (work.size.groups == 1)
    return std::make_unique<Q8ProductStep>(context.threads, std::move(work), inputs[1], packed);
  return std::make_unique<Q8DepthwiseFloatStep>(std::move(work), inputs[1], packed);
}

}  // namespace backplane::cpu
