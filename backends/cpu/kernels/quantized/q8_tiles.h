// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit quantized values with known weights on our own tiles, for processors that multiply
// four 8-bit values at once. Tensors are channels-last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/direct_conv.h"
#include "kernels/common/quantization.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/quantized/q8_sum.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// A result is the quantized value of (sum + bias) · scale, where sums are integers.
struct Q8Work {
  ConvSize size;
  Window window;
  bool transposed =
      false;  // weight i of output channel o is at i · out_channels + o, else those of a channel are contiguous
  Quantization source, result;
  int32_t weight_zero;
  std::vector<float> bias, scale;        // of each output channel
  std::optional<Activation> activation;  // kRelu or kClip, in quantization steps of the result
  std::optional<Q8Sum> sum;              // of the result and another input: the step's result

  // The smallest and the largest quantized value of a result.
  int32_t low() const { return bound(true); }
  int32_t high() const { return bound(false); }
  // Whether sums, and results before they are quantized, fit in 32 bits.
  bool stays_small() const;

 private:
  int32_t bound(bool lower) const;
};

// Packed weights of a chunk of output channels. For each lane, the initial value of its sums, their scale, and the
// summand after scaling; then the weights, in the order of the tile.
struct Q8Pack {
  int32_t* starts;
  float *scale, *added;
  int8_t* weights;

  Q8Pack(std::byte* chunk, int64_t width);
  // Sets the constants of a channel; `weight_sum` is the sum of its weights. The bias, rounded to an integer, is added
  // to the sums exactly; the remainder is usually 0.
  void set(int64_t lane, const Q8Work& work, int64_t channel, int32_t weight_sum) const;
};

}  // namespace backplane::cpu
