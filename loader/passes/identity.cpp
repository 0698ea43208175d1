// SPDX-License-Identifier: Apache-2.0
#include "passes/identity.h"

#include "ops/schema/schema.h"

namespace backplane::model {

Node make_identity(Model& model, ValueId from, ValueId to) {
  Node node;
  node.op_type = "Identity";
  node.id = model.next_id++;
  node.schema = ops::newest_schema("", "Identity");
  node.since_version = node.schema->since_version;
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

}  // namespace backplane::model
