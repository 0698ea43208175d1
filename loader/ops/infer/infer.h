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
  // Declared types that contradict the inferred ones fail with BP_TYPE_MISMATCH, extents included.
  bool exact = false;
  // Sets the output types of node `node`, whose operator has neither a schema nor a rule (foreign_rule in rules.h). If
  // this function is empty, the types stay unknown.
  std::function<Status(const model::Graph&, uint32_t node, std::vector<model::Type>& outputs)> foreign;
};

// Sets Value::type of every value as far as inputs, weights and attributes determine it. Replaces results of shape
// arithmetic with constants if their numbers are known. Declared types are kept where inference finds less. Where it
// finds something else, a different kind or element type is BP_INVALID_MODEL and the error names the node; a different
// rank or extent becomes one of the model's problems, and the inferred shape is used (for operators without a schema,
// it is BP_INVALID_MODEL too). Adds symbols for new dimensions, such as "floor((W + 1)/2)", and "x.2" for axis 2 of
// input x if the model declares neither a number nor a name for it.
Status infer(model::Model& model, const Inference& how = {});

}  // namespace backplane::ops
