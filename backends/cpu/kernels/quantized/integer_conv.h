// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit codes with known weights: what a model says with DequantizeLinear before
// and QuantizeLinear behind a Conv, Gemm or MatMul. Sums are whole numbers, exact; tensors lie with their channels
// last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/quantized/quantized_sum.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// Whether oneDNN multiplies codes here, without saturating what it adds up. Elsewhere numbers are faster.
bool has_integer_products();

struct IntegerProduct {
  Quantization source, result;
  int32_t weight_zero = 0;
  std::vector<float> weight_scales;      // one, or one for each output channel
  std::vector<double> bias;              // real numbers for each output channel, or none
  std::optional<Activation> activation;  // kRelu or kClip, of real numbers
  std::optional<QuantizedSum> sum;       // of the result and one more input with as many codes
};

// Whether a Conv with weights of these extents computes `product.sum` as well, without a pass of its own.
bool takes_sum(const Node& conv, const IntegerProduct& product, const Shape& weights);

// The kernel of a Conv, or of a product whose weights are [K, N], or [N, K] if transposed. Its inputs are the codes of
// the source and the weights, and those that are added.
std::unique_ptr<Kernel> make_integer_conv(const Node& conv, IntegerProduct product);
std::unique_ptr<Kernel> make_integer_matmul(IntegerProduct product, bool transposed);

}  // namespace backplane::cpu
