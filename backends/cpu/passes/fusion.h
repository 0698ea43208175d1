// SPDX-License-Identifier: Apache-2.0
// Fuses a node with the nodes that only post-process its result, such as normalizations, additions and activations. The
// node's kernel applies them when it writes the result. Also fuses the nodes that match a pattern (pattern_*.h).
#pragma once

#include "runtime/call.h"

namespace backplane::cpu {

// A late pass (runtime/operators.h). For each chain of calls that can be fused, moves the kernel of the first call to
// the last one, together with the operands of the whole chain. Marks the other calls as skipped.
void fuse(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known);

}  // namespace backplane::cpu
