// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their global forms on 8-bit quantized values, in channels-last layout.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

// Source and result share one quantization, so the largest quantized value is the quantized maximum.
std::unique_ptr<Kernel> make_q8_max_pool(const Node& pool, Quantization quantization);
std::unique_ptr<Kernel> make_q8_average_pool(const Node& pool, Quantization source, Quantization result);

}  // namespace backplane::cpu
