// SPDX-License-Identifier: Apache-2.0
// Infers types and shapes of all values of a canonical graph, with symbolic dimensions and shape arithmetic.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace backplane::ops {

struct Inference {
  // Values that are inferred to be numbers become constants, and are removed from the outputs of their nodes.
  bool fold = true;
  // Returns the types of the outputs of node `node`, whose operator the loader does not know. Empty: they stay unknown.
  std::function<Status(const model::Graph&, uint32_t node, std::vector<model::Type>& outputs)> foreign;
};

// Sets Value::type of every value as far as it can be inferred from inputs, weights and attributes, and replaces
// results of shape arithmetic that are inferred to be numbers by constants. Declared types are kept if inference
// knows less, and compared if it knows more: another element type is BP_INVALID_MODEL and names the node; other
// extents become one of the model's problems, and the inferred ones are used. Adds symbols for new dimensions:
// "floor((W + 1)/2)", and "x.2" for axis 2 of input x if the model declares neither a number nor a name.
Status infer(model::Model& model, const Inference& how = {});

}  // namespace backplane::ops
