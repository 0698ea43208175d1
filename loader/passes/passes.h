// SPDX-License-Identifier: Apache-2.0
// The passes from a parsed model to the canonical one, in the order in which import/import.cpp calls them. Three passes
// between share_carried and select_branches are declared elsewhere: upgrade (ops/upgrade/upgrade.h),
// differentiate (gradient.h) and infer (ops/infer/infer.h).
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// Checks ONNX's rules: the IR version and the opsets are not newer than this build, operators of known domains exist,
// attributes and the numbers of inputs and outputs fit the schemas, no value has two producers, each value that is read
// has one, and there is no cycle. Sets Node::schema and since_version, in function bodies too, adds values for omitted
// required outputs, and sorts nodes topologically.
Status check(Model& model);
// A part of `check`, which the inliner also calls for nodes that it changes. Checks a node against its schema: the
// numbers of inputs and outputs, and the attributes, none of which may refer to an attribute of a function call.
// Removes trailing omitted inputs and outputs, except required inputs and variadic ones.
Status check_node(Node& node);
// Replaces calls of the model's own functions by their bodies. Graph::calls lists the calls, and Node::call refers to
// the call that a node belongs to.
Status inline_functions(Model& model);
// Turns Constant nodes into weights.
Status lift_constants(Model& model);
// Makes bodies of Loop read values that they carry unchanged, such as the weights of a decoder, from the enclosing
// graph, where they may be constants.
void share_carried(Model& model);
// Replaces an If whose condition is known by the nodes of the branch that it takes.
void select_branches(Model& model);
// Merges the nodes Flatten → Softmax → Reshape, which the upgrade inserts while shapes are unknown, into one node where
// possible.
void merge_legacy_softmax(Model& model);
// Removes nodes without effect in inference: Identity, Dropout unless its mask is read or it may be in training mode,
// casts to the same type, and nodes whose results are not read. A node that only passes a graph input, a constant or
// another output on to a graph output stays.
void prune(Model& model);
// For each call, finds the nodes of its body that remain and stores their range in Call::first and count. Sets count to
// 0 if the call can no longer replace these nodes.
void find_function_calls(Model& model);

}  // namespace backplane::model
