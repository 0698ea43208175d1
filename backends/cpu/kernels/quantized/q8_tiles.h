// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit quantized values with known weights on tiles of our own, where the processor
// multiplies four quantized values at once. Tensors lie with their channels last.
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

// A result is the quantized value of (sum + bias) · scale, sums being whole numbers.
struct Q8Work {
  ConvSize size;
  Window window;
  bool transposed = false;  // weight i of output channel o lies at i · out_channels + o, else they lie together
  Quantization source, result;
  int32_t weight_zero;
  std::vector<float> bias, scale;        // of each output channel
  std::optional<Activation> activation;  // kRelu or kClip, in steps of the result
  std::optional<Q8Sum> sum;              // of the result and one more input, which becomes the step's result

  // The least and the largest quantized value of a result.
  int32_t low() const { return bound(true); }
  int32_t high() const { return bound(false); }
  // Whether sums and results stay numbers of 32 bits before they become quantized values.
  bool stays_small() const;

 private:
  int32_t bound(bool lower) const;
};

// What a tile reads for a chunk of output channels: in each lane what a sum begins with, the scale of sums and what is
// added then; behind these the weights, in the tile's order.
struct Q8Pack {
  int32_t* starts;
  float *scale, *added;
  int8_t* weights;

  Q8Pack(std::byte* chunk, int64_t width);
  // A channel's constants; `weight_sum` is that of all its weights. The bias's whole part is added to sums exactly;
  // mostly there is no other.
  void set(int64_t lane, const Q8Work& work, int64_t channel, int32_t weight_sum) const;
};

}  // namespace backplane::cpu
