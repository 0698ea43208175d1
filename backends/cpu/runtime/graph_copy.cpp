// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_copy.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

bp_graph_t copy_graph(const bp_graph_t& graph) {
  return sdk::read(&graph, "graph");
}

bp_type_t copy_type(const bp_graph_t& graph, uint32_t type) {
  return sdk::element(graph.types, type, graph.type_stride);
}

}  // namespace backplane::cpu
