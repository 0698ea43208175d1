// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit quantized values in oneDNN.
#pragma once

#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/onednn/onednn.h"

namespace backplane::cpu {

// Whether oneDNN 2 is used, with 8-bit products without saturating sums on this processor. Otherwise fp32 is faster.
bool has_q8_products();

// Sums of quantized values become quantized values: activation((sum + bias) · scale), rounded, plus the result's zero
// point. The bias is an argument of the execution, in float.
struct Q8Convolution {
  dnnl::memory::desc source, weights, result;  // weights are int8
  dnnl::memory::dims strides, dilations, begin, end;
  int32_t source_zero = 0, result_zero = 0;
  std::vector<float> scale;  // for each output channel: from steps of the sum to steps of the result
  std::optional<Activation> activation;
};

// Returns an empty description if oneDNN has no implementation.
dnnl::convolution_forward::primitive_desc describe_convolution(const Q8Convolution& arguments);

}  // namespace backplane::cpu
