// SPDX-License-Identifier: Apache-2.0
#include "ir/subgraphs.h"

#include <algorithm>

namespace backplane::model {

std::vector<Graph*> bodies(const Graph& graph, const Node& node) {
  std::vector<Graph*> found;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
    for (const uint32_t index : attribute.indices()) found.push_back(graph.subgraphs[index].get());
  }
  return found;
}

std::vector<ValueId> captures(const Graph& graph, const Node& node) {
  std::vector<ValueId> found;
  for (const Graph* body : bodies(graph, node)) {
    for (const Value& value : body->values) {
      if (value.outer != BP_NONE) found.push_back(value.outer);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace backplane::model
