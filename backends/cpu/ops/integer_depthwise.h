// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel of 8-bit codes by itself, where the processor multiplies four codes at once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/kernel.h"
#include "ops/direct_conv.h"
#include "ops/packed_weights.h"
#include "ops/quantization.h"

namespace backplane::cpu {

// A result is the code of (sum + bias) · scale, sums being whole numbers.
struct IntegerDepthwise {
  ConvSize size;
  Window window;
  Quantization source, result;
  int32_t weight_zero;
  std::vector<float> bias, scale;        // of each channel
  std::optional<Activation> activation;  // kRelu or kClip, in steps of the result
};

// A step for codes with their channels last and known weights; null where there is no fast one.
std::unique_ptr<Step> make_integer_depthwise(IntegerDepthwise conv, std::span<const Tensor> inputs,
                                             PackedWeights& packed);

}  // namespace backplane::cpu
