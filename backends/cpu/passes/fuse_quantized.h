// SPDX-License-Identifier: Apache-2.0
// Operators between DequantizeLinear and QuantizeLinear become operators on the quantized values.
#pragma once

#include "runtime/call.h"

namespace backplane::cpu {

// An early pass. Every DequantizeLinear whose result has no readers left counts as folded.
void fuse_quantized(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                    const std::vector<bool>& known);

}  // namespace backplane::cpu
