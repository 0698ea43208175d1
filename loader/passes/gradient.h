// SPDX-License-Identifier: Apache-2.0
// Replaces ai.onnx.preview.training.Gradient by the nodes that compute it, so that backends need not implement it.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Replaces every Gradient node by reverse-mode differentiation of the nodes between its xs and its y. If y has more
// than one element, the gradient is that of the sum of its elements. Runs after upgrade and before infer, and calls
// infer itself because it needs shapes. Returns BP_INVALID_MODEL for errors such as unknown names. Returns
// BP_UNSUPPORTED, with the node's name, for a node without a derivative and for a Gradient in a function or subgraph.
Status differentiate(Model& model);

}  // namespace backplane::model
