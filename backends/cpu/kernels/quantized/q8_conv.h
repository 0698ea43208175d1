// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit quantized values with known weights: a Conv, Gemm or MatMul between
// DequantizeLinear and QuantizeLinear. Sums are exact integers; tensors are channels-last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/quantized/q8_sum.h"
#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

struct Q8Product {
  Quantization source, result;
  int32_t weight_zero = 0;
  std::vector<float> weight_scales;      // one, or one for each output channel
  std::vector<double> bias;              // real numbers for each output channel, or none
  std::optional<Activation> activation;  // kRelu or kClip, of real numbers
  std::optional<Q8Sum> sum;              // of the result and another input of its shape
};

// Whether a Conv with weights of these extents can compute `product.sum` as well, without another pass over the result.
bool takes_sum(const Node& conv, const Q8Product& product, const Shape& weights);

// The kernel of a Conv, or of a product whose weights are [K, N], or [N, K] if transposed. Its inputs are the quantized
// values of the source and the weights, and, with a sum, of the other summand.
std::unique_ptr<Kernel> make_q8_conv(const Node& conv, Q8Product product);
std::unique_ptr<Kernel> make_q8_matmul(Q8Product product, bool transposed);

ImplementationNames q8_implementations();

}  // namespace backplane::cpu
