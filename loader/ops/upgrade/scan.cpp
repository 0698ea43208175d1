// SPDX-License-Identifier: Apache-2.0
#include "ops/upgrade/upgrade.h"
#include "ops/upgrade/upgrades.h"

namespace backplane::ops {

// In Scan-8, axis 0 of all inputs and outputs is a batch, and axis 1 is scanned. The equivalent is an outer Scan over
// the batch, whose body is a Scan without a batch.
Status scan_batch(Rewrite& r) {
  Node& node = r.node;
  if (node.input(0) != BP_NONE) return r.unsupported("its input sequence_lens is present");
  node.inputs.erase(node.inputs.begin());
  const size_t scans = static_cast<size_t>(node.attr("num_scan_inputs", int64_t{1}));
  if (scans == 0 || scans > node.inputs.size())
    return r.invalid("num_scan_inputs is " + std::to_string(static_cast<int64_t>(scans)) +
                     ", but it must be from 1 to " + std::to_string(node.inputs.size()));

  auto middle = std::make_unique<model::Graph>();
  middle->name = node.name + "/batch";
  middle->parent = &r.graph;
  const uint32_t body_index = node.find("body")->indices().front();
  std::unique_ptr<model::Graph> body = std::move(r.graph.subgraphs[body_index]);
  body->parent = middle.get();
  for (model::Value& value : body->values) {  // captured values now pass through the outer Scan's body
    if (value.outer == BP_NONE) continue;
    const ValueId passed = middle->add_value(r.graph.values[value.outer].name, r.graph.values[value.outer].type);
    middle->values[passed].outer = value.outer;
    value.outer = passed;
  }

  Node inner;
  inner.op_type = "Scan";
  inner.id = r.model.next_id++;
  inner.name = node.name;
  inner.schema = newest_schema("", "Scan");
  inner.since_version = inner.schema->since_version;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    inner.inputs.push_back(middle->add_value("in" + std::to_string(i) + "#" + std::to_string(inner.id)));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    inner.outputs.push_back(middle->add_value("out" + std::to_string(i) + "#" + std::to_string(inner.id)));
  }
  middle->inputs.assign(inner.inputs.begin(), inner.inputs.end());
  middle->outputs.assign(inner.outputs.begin(), inner.outputs.end());
  inner.set({"body", BP_ATTR_GRAPH, std::vector<uint32_t>{0}});
  inner.set(Attribute::of("num_scan_inputs", static_cast<int64_t>(scans)));
  if (const Attribute* directions = node.find("directions")) {
    inner.set(Attribute::of("scan_input_directions", directions->ints()));
  }
  write_defaults(inner);
  middle->subgraphs.push_back(std::move(body));
  middle->nodes.push_back(std::move(inner));

  r.graph.subgraphs[body_index] = std::move(middle);
  node.erase("directions");
  node.set(Attribute::of("num_scan_inputs", static_cast<int64_t>(node.inputs.size())));
  return {};
}

}  // namespace backplane::ops
