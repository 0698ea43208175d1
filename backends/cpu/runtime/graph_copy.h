// SPDX-License-Identifier: Apache-2.0
// Copy a host's graph and its types. An older host's structs have fewer fields: a plain assignment would read beyond
// their end, where memory may not be readable.
#pragma once

#include "backplane/graph.h"

namespace backplane::cpu {

bp_graph_t copy_graph(const bp_graph_t& graph);
bp_type_t copy_type(const bp_graph_t& graph, uint32_t type);

}  // namespace backplane::cpu
