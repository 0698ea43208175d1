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
