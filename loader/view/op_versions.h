// SPDX-License-Identifier: Apache-2.0
// Finds older forms of nodes, for plugins that do not support the newest forms.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// The newest form of the node's operator that exists in version `newest` of its domain and has the same meaning for
// this node; null if there is none. `node.schema` must be set.
const ops::Schema* older_form(const Graph& graph, const Node& node, uint32_t newest);

}  // namespace backplane::model
