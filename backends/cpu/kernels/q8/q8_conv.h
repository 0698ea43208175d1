// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit quantized values, whose weights are known at plan time. They replace a
// Conv, Gemm or MatMul between DequantizeLinear and QuantizeLinear, a QLinearConv or a QLinearMatMul. Sums are exact
// integers; tensors are channels-last, except in the reference implementation, whose tensors are dense.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/quantization.h"
#include "kernels/post_op/post_op.h"
#include "kernels/q8/q8_sum.h"
#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

struct Q8Product {
  Quantization source, result;
  int32_t weight_zero = 0;
  std::vector<float> weight_scales;      // one for all output channels, or one for each
  std::vector<double> bias;              // real numbers, one per output channel; empty without a bias
  std::optional<Activation> activation;  // kRelu or kClip, applied to real numbers
  std::optional<Q8Sum> sum;              // adds another input, which has the shape of the result
};

// Whether a Conv with weights of these extents can also compute `product.sum`, without another pass over the result.
bool takes_sum(const Node& conv, const Q8Product& product, const Shape& weights);

// Whether a Conv with weights of these extents, or a product, is faster with 8-bit values than with fp32.
bool has_fast_q8_conv(const Node& conv, const Shape& weights);
bool has_fast_q8_matmul();

// Create the kernel of a Conv, or of a product whose weights are [K, N] ([N, K] if transposed). The inputs are
// quantized values: the source, the weights and, if product.sum is set, the tensor to add.
std::unique_ptr<Kernel> make_q8_conv(const Node& conv, Q8Product product);
std::unique_ptr<Kernel> make_q8_matmul(Q8Product product, bool transposed);

ImplementationNames q8_implementations();

}  // namespace backplane::cpu
