// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit quantized values, whose weights are known at plan time. They are computed in
// tiles: a few output positions whose sums stay in registers. The processor must have VNNI, which adds four products of
// 8-bit values to a 32-bit sum at once. Tensors are channels-last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/direct_conv.h"
#include "kernels/common/quantization.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/post_op/post_op.h"
#include "kernels/q8/q8_sum.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// A convolution or product to compute. A result is (sum + bias) · scale, quantized; the sums are integers.
struct Q8Work {
  ConvSize size;
  Window window;
  bool transposed = false;  // weights are [input][output channel] instead of [output channel][input]
  Quantization source, result;
  int32_t weight_zero;
  std::vector<float> bias, scale;        // one per output channel
  std::optional<Activation> activation;  // kRelu or kClip, with limits in quantization steps of the result
  std::optional<Q8Sum> sum;              // adds another input to the result

  // The smallest and the largest quantized value that a result can have before the addition in `sum`.
  int32_t low() const { return bound(true); }
  int32_t high() const { return bound(false); }
  // Whether sums, and results before they are quantized, fit in 32 bits.
  bool stays_small() const;
  // Whether a 1×1 window reads padding at some output position.
  bool reads_padding() const;

 private:
  int32_t bound(bool lower) const;
};

// Converts sums to quantized values, in loops of CLONED functions (kernels/simd/clones.h). A result is sum · scale +
// shift in quantization steps, rounded, plus the zero point.
struct Requantize {
  const float *scale, *shift;  // per output channel
  float low, high;             // limits, relative to the zero point
  int32_t zero;

  // For the output channels from `channel` on. `shift` has one element for each of the work's channels.
  Requantize(const Q8Work& work, const std::vector<float>& shifts, int64_t channel)
      : scale(work.scale.data() + channel),
        shift(shifts.data() + channel),
        low(static_cast<float>(work.low() - work.result.zero)),
        high(static_cast<float>(work.high() - work.result.zero)),
        zero(work.result.zero) {}

  // The same, for the channels from the given one on.
  [[gnu::always_inline]] inline Requantize from(int64_t channel) const {
    Requantize rest = *this;
    rest.scale += channel;
    rest.shift += channel;
    return rest;
  }
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

// The packed weights of a chunk of output channels. A lane is the position of a channel in the chunk. The first three
// arrays have one element per lane, and a result is sum · scale + added, where the sum begins with `starts`. The
// weights are in the order in which the kernel of the tile reads them.
struct Q8Pack {
  int32_t* starts;
  float *scale, *added;
  int8_t* weights;

  Q8Pack(std::byte* chunk, int64_t width);
  // Sets the constants of a channel whose weights add up to `weight_sum`. Sums start from the bias, rounded to an
  // integer, minus the products of the weights with the source's zero point. If the source is signed, 128 is added to
  // its zero point, as to its values. The remainder of the bias, usually 0, is scaled and becomes `added`.
  void set(int64_t lane, const Q8Work& work, int64_t channel, int32_t weight_sum) const;
};

}  // namespace backplane::cpu
