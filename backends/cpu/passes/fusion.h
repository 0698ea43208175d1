// SPDX-License-Identifier: Apache-2.0
// Joins a node with those that only finish its result: normalizations, additions and activations then happen where the
// result is written, and never pass through memory.
#pragma once

#include "runtime/program.h"

namespace backplane::cpu {

// Moves the kernel of each joined chain to its last call, with the operands that it then has; the others count as
// folded.
void fuse(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known);

// Before it: operators between DequantizeLinear and QuantizeLinear compute on the codes. DequantizeLinear that nobody
// reads any more counts as folded.
void fuse_quantized(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                    const std::vector<bool>& known);

}  // namespace backplane::cpu
