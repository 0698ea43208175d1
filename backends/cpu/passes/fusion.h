// SPDX-License-Identifier: Apache-2.0
// Fuses a node with nodes that only post-process its result: normalizations, additions and activations are applied
// where the result is written.
#pragma once

#include "runtime/call.h"

namespace backplane::cpu {

// Moves the kernel of each fused chain to its last call, with the operands of the whole chain; the other calls count as
// folded.
void fuse(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known);

}  // namespace backplane::cpu
