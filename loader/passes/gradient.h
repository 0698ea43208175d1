// SPDX-License-Identifier: Apache-2.0
// ai.onnx.preview.training.Gradient, written out as the nodes that compute it: no backend has to know it.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Replaces every Gradient by reverse-mode differentiation of the nodes between its xs and its y. Where y has more than
// one element, the gradient is that of their sum. Runs after upgrade and before infer (it calls infer itself where it
// needs shapes). BP_INVALID_MODEL for names that do not exist; BP_UNSUPPORTED names the node without a derivative.
Status differentiate(Model& model);

}  // namespace backplane::model
