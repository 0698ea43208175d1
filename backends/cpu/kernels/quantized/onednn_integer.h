// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit codes in oneDNN.
#pragma once

#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/onednn/onednn.h"

namespace backplane::cpu {

// Sums of codes become codes: activation((sum + bias) · scale), rounded, plus the result's zero point. The bias is an
// argument of the execution, in float.
struct IntegerConvolution {
  dnnl::memory::desc source, weights, result;  // weights of S8
  dnnl::memory::dims strides, dilations, begin, end;
  int32_t source_zero = 0, result_zero = 0;
  std::vector<float> scale;  // for each output channel: from steps of the sum to steps of the result
  std::optional<Activation> activation;
};

// Throws dnnl::error where oneDNN has no implementation.
dnnl::convolution_forward::primitive_desc make_convolution(const IntegerConvolution& arguments);

}  // namespace backplane::cpu
