// SPDX-License-Identifier: Apache-2.0
// Infers types and shapes of all values of a canonical graph, with symbolic dimensions and shape arithmetic.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace backplane::ops {

struct Inference {
  // Values that inference finds to be known numbers become constants and are removed from the outputs of their nodes,
  // except graph outputs and results of nodes that return their input (Identity, casts to the same type).
  bool fold = true;
  // Whether inference fails with BP_TYPE_MISMATCH if a declared type or extent contradicts the inferred one.
  bool exact = false;
  // Sets the output types of node `node`, whose operator has neither a schema nor a rule (foreign_rule in rules.h). If
  // this function is empty, the types stay unknown.
  std::function<Status(const model::Graph&, uint32_t node, std::vector<model::Type>& outputs)> foreign;
};

// Sets Value::type of every value as far as inputs, weights and attributes determine it. Replaces results of shape
// arithmetic with constants if their numbers are known. Declared types are kept where inference finds less. If a
// declared kind or element type contradicts the inferred one, returns BP_INVALID_MODEL and names the node. If a
// declared rank or extent does, adds a note to the model's problems and uses the inferred shape; for operators without
// a schema, this is BP_INVALID_MODEL too. Adds symbols for new dimensions, such as "floor((W + 1)/2)", and "x.2" for
// axis 2 of input x if the model declares neither a number nor a name for that axis.
Status infer(model::Model& model, const Inference& how = {});

}  // namespace backplane::ops
