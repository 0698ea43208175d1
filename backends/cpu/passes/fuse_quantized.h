// SPDX-License-Identifier: Apache-2.0
// Replaces operators between DequantizeLinear and QuantizeLinear, and QLinearConv and QLinearMatMul, with kernels that
// compute on the quantized values.
#pragma once

#include "runtime/call.h"

namespace backplane::cpu {

// An early pass (runtime/operators.h). It marks a DequantizeLinear as skipped if no reader of its result is left.
void fuse_quantized(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                    const std::vector<bool>& known);

}  // namespace backplane::cpu
