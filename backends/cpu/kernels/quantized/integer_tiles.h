// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit codes with known weights on tiles of our own, where the processor multiplies four
// codes at once. Tensors lie with their channels last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/direct_conv.h"
#include "kernels/common/quantization.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/quantized/quantized_sum.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// A result is the code of (sum + bias) · scale, sums being whole numbers.
struct IntegerWork {
  ConvSize size;
  Window window;
  bool turned = false;  // weight i of output channel o lies at i · out_channels + o, else they lie together
  Quantization source, result;
  int32_t weight_zero;
  std::vector<float> bias, scale;        // of each output channel
  std::optional<Activation> activation;  // kRelu or kClip, in steps of the result
  std::optional<QuantizedSum> sum;       // of the result and one more input, which becomes the step's result

  // The least and the largest code of a result.
  int32_t low() const { return bound(true); }
  int32_t high() const { return bound(false); }
  // Whether sums and results stay numbers of 32 bits before they become codes.
  bool stays_small() const;

 private:
  int32_t bound(bool lower) const;
};

// What a tile reads for a chunk of output channels: in each lane what a sum begins with, the scale of sums and what is
// added then; behind these the weights, in the tile's order.
struct IntegerPack {
  int32_t* starts;
  float *scale, *added;
  int8_t* codes;

  IntegerPack(std::byte* chunk, int64_t width);
  // A channel's constants; `weight_sum` is that of all its weights. The bias's whole part is added to sums exactly;
  // mostly there is no other.
  void set(int64_t lane, const IntegerWork& work, int64_t channel, int32_t weight_sum) const;
};

// Whether single places, with a sum or without, have a fast step.
bool suits_pointwise(const IntegerWork& work);

// Steps; null where there is no fast one. The first: each channel by itself, by 3×3 taps. The second: single places,
// with the sum's other codes as the last input.
std::unique_ptr<Step> make_integer_depthwise(IntegerWork conv, std::span<const Tensor> inputs, PackedWeights& packed);
std::unique_ptr<Step> make_integer_pointwise(IntegerWork conv, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
