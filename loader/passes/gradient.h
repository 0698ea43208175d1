// SPDX-License-Identifier: Apache-2.0
// Replaces ai.onnx.preview.training.Gradient by the nodes that compute it, so that no backend has to implement it.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Replaces every Gradient by reverse-mode differentiation of the nodes between its xs and its y. If y has more than one
// element, the gradient is that of the sum of y. Runs after upgrade and before infer (but calls infer itself to get
// shapes). BP_INVALID_MODEL, for example, for unknown names; BP_UNSUPPORTED names a node without a derivative.
Status differentiate(Model& model);

}  // namespace backplane::model
