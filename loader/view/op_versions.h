// SPDX-License-Identifier: Apache-2.0
// The form in which an older plugin can be shown a node.
#pragma once

#include "ir/graph.h"

namespace backplane::model {

// The newest form of the node's operator that exists in version `newest` of its domain and means the same for this node
// as it stands; null when there is none. `node.schema` must be set.
const ops::Schema* older_form(const Graph& graph, const Node& node, uint32_t newest);

}  // namespace backplane::model
