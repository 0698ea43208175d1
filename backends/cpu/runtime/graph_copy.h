// SPDX-License-Identifier: Apache-2.0
// Copies of a host's graph and its types. An older host's have fewer fields, and may end where its memory does: copy
// them with these functions, not by assignment.
#pragma once

#include "backplane/graph.h"

namespace backplane::cpu {

bp_graph_t copy_graph(const bp_graph_t& graph);
bp_type_t copy_type(const bp_graph_t& graph, uint32_t type);

}  // namespace backplane::cpu
