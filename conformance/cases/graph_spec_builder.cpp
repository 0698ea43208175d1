// SPDX-License-Identifier: Apache-2.0
#include "cases/graph_spec_builder.h"

#include <algorithm>
#include <stdexcept>

#include "judge/control.h"

namespace backplane::conform {
namespace {

const std::vector<uint32_t>& versions_of(const std::string& op) {
  for (const ControlOperator& one : control_operators()) {
    if (one.name == op) return one.versions;
  }
  return find_operator(op).versions;
}

}  // namespace

uint32_t GraphSpecBuilder::node(const std::string& op, std::vector<uint32_t> inputs,
                                const std::vector<ValueSpec>& outputs, Attributes attributes) {
  const auto version = newest_form(versions_of(op), spec_.opset, false);
  if (!version) throw std::invalid_argument("operator set " + std::to_string(spec_.opset) + " has no " + op);
  NodeSpec node{op, "", *version, std::move(inputs), {}, std::move(attributes)};
  for (const ValueSpec& output : outputs) {
    node.outputs.push_back(value(output.dtype, output.extents));
    spec_.values.back().symbols = output.symbols;
  }
  const uint32_t first = node.outputs.front();
  spec_.nodes.push_back(std::move(node));
  return first;
}

}  // namespace backplane::conform
