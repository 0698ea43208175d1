// SPDX-License-Identifier: Apache-2.0
// The passes from a parsed model to the canonical one, in the order in which import/import.cpp calls them. Between
// lift_constants and merge_legacy_softmax it also calls ops/upgrade/upgrade.h, gradient.h and ops/infer/infer.h.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Checks ONNX's rules: opsets are known, operators exist, attributes and the numbers of inputs and outputs fit the
// schemas, every value has one producer, and there is no cycle. Sets Node::schema and since_version, in function bodies
// too, and sorts nodes topologically.
Status check(Model& model);
// A part of `check`, which the inliner calls for nodes that it changes. Checks a node against its schema: the numbers
// of inputs and outputs, and the attributes. Removes trailing omitted inputs and outputs.
Status check_node(Node& node);
// Replaces calls of the model's own functions by their bodies. Graph::calls records which nodes belong to which call.
Status inline_functions(Model& model);
// Turns Constant nodes into weights.
Status lift_constants(Model& model);
// Merges the nodes Flatten → Softmax → Reshape, which the upgrade inserts while shapes are unknown, into one node where
// possible.
void merge_legacy_softmax(Model& model);
// Removes nodes without effect in inference: Identity, Dropout, casts to the same type, and nodes whose results are not
// read.
void prune(Model& model);
// For each call, finds the nodes of its body that remain, and whether the call can still replace them.
void find_function_calls(Model& model);

}  // namespace backplane::model
