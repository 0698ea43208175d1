// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their global forms on codes, with the channels last.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// The maximum of codes is the code of the maximum: source and result have one quantization.
std::unique_ptr<Kernel> make_quantized_max_pool(const Node& pool, Quantization codes);
std::unique_ptr<Kernel> make_quantized_average_pool(const Node& pool, Quantization source, Quantization result);

}  // namespace backplane::cpu
