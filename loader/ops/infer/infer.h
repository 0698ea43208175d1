// SPDX-License-Identifier: Apache-2.0
// Types and shapes of all values of a graph in canonical form, symbolic dimensions and shape arithmetic included.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace backplane::ops {

struct Inference {
  // Values that turn out to be plain numbers become constants, and the outputs that made them are left out.
  bool fold = true;
  // Asked for the types of the outputs of node `node`, whose operator the loader does not know. May be empty.
  std::function<Status(const model::Graph&, uint32_t node, std::vector<model::Type>& outputs)> foreign;
};

// Fills in Value::type of every value that follows from the inputs, weights and attributes, and replaces values of
// shape arithmetic that turn out to be plain numbers by constants. What the model declares is kept where inference
// knows less and compared where it knows more: another element type is BP_INVALID_MODEL and names the node; other
// extents become one of the model's problems, and what was inferred counts. Adds symbols for dimensions that are new:
// "floor((W + 1)/2)", and "x.2" for axis 2 of input x where the model gives it neither a number nor a name.
Status infer(model::Model& model, const Inference& how = {});

}  // namespace backplane::ops
