// SPDX-License-Identifier: Apache-2.0
#include "runtime/at_node.h"

namespace backplane::cpu {

std::string describe(const bp_node_t& node) {
  std::string text(node.op_type.data, node.op_type.size);
  if (node.name.size != 0) return text + " '" + std::string(node.name.data, node.name.size) + "'";
  return text + " #" + std::to_string(node.id);
}

}  // namespace backplane::cpu
