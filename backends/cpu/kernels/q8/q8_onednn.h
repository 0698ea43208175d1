// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit quantized values by oneDNN.
#pragma once

#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/onednn/onednn.h"
#include "kernels/post_op/post_op.h"

namespace backplane::cpu {

// Whether convolutions and products of 8-bit values are faster than those of fp32. They need oneDNN 2, and VNNI, which
// adds products of 8-bit values without saturation.
bool has_q8_products();

// A convolution whose result is activation((sum + bias) · scale), rounded, plus the zero point of the result. The sum
// is over products of quantized values. The bias is float and an argument of each execution.
struct Q8Convolution {
  dnnl::memory::desc source, weights, result;  // weights are int8
  dnnl::memory::dims strides, dilations, begin, end;
  int32_t source_zero = 0, result_zero = 0;
  std::vector<float> scale;  // per output channel; converts quantization steps of the sum to those of the result
  std::optional<Activation> activation;
};

// Returns an empty description if oneDNN has no implementation.
dnnl::convolution_forward::primitive_desc describe_convolution(const Q8Convolution& arguments);

}  // namespace backplane::cpu
