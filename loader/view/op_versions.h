// SPDX-License-Identifier: Apache-2.0
// Finds older forms of nodes, for plugins that do not support the newest forms.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// The form that the node's operator has in version `newest` of its domain, or null if there is none, or if it has
// another meaning or cannot express this node. `node.schema` must be set.
const ops::Schema* older_form(const Graph& graph, const Node& node, uint32_t newest);

}  // namespace backplane::model
