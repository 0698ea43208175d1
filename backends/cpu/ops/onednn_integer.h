// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit codes in oneDNN.
#pragma once

#include <optional>
#include <vector>

#include "ops/onednn.h"
#include "ops/quantization.h"

namespace backplane::cpu {

// Sums of codes become codes: activation(sum · scale + shift), rounded, plus the result's zero point.
struct IntegerConvolution {
  dnnl::memory::desc source, weights, result;  // weights of S8
  dnnl::memory::dims strides, dilations, begin, end;
  int32_t source_zero = 0, result_zero = 0;
  std::vector<float> scale, shift;  // for each output channel, in steps of the result
  std::optional<Activation> activation;
};

// Whether this processor multiplies codes without saturating what it adds up.
bool has_integer_products();

// Throws dnnl::error where oneDNN has no implementation. The bias that it takes is `shift / scale`, in float.
dnnl::convolution_forward::primitive_desc make_convolution(const IntegerConvolution& arguments);

}  // namespace backplane::cpu
