// SPDX-License-Identifier: Apache-2.0
#include "testing/graph_builder.h"

namespace backplane::cpu::testing {

bp_text_t GraphBuilder::text(const std::string& view) {
  texts_.push_back(view);
  return {texts_.back().data(), texts_.back().size()};
}

uint32_t GraphBuilder::value(const std::string& name) {
  if (name.empty()) return BP_NONE;
  auto [entry, added] = names_.emplace(name, static_cast<uint32_t>(values_.size()));
  if (added) {
    types_.push_back({0, BP_DTYPE_UNDEFINED, -1, 0, BP_NONE, 0});
    values_.push_back(
        {text(name), static_cast<uint32_t>(types_.size() - 1), BP_NONE, BP_NONE, BP_NONE, BP_NONE, 0, 0, 0});
  }
  return entry->second;
}

void GraphBuilder::set_type(uint32_t value, bp_dtype_t dtype, const std::vector<int64_t>* extents) {
  bp_type_t& type = types_[values_[value].type];
  type = {BP_KIND_TENSOR,
          dtype,
          extents == nullptr ? -1 : static_cast<int32_t>(extents->size()),
          static_cast<uint32_t>(dims_.size()),
          BP_NONE,
          0};
  if (extents == nullptr) return;
  for (int64_t extent : *extents) {
    uint32_t symbol = extent <= -2 ? static_cast<uint32_t>(-extent - 2) : BP_NONE;
    while (symbol != BP_NONE && symbols_.size() <= symbol)
      symbols_.push_back({text("s" + std::to_string(symbols_.size())), 1, INT64_MAX});
    dims_.push_back({extent < 0 ? -1 : extent, symbol, 0});
  }
}

GraphBuilder& GraphBuilder::type(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  set_type(value(name), dtype, &extents);
  return *this;
}

GraphBuilder& GraphBuilder::type_of_unknown_rank(const std::string& name, bp_dtype_t dtype) {
  set_type(value(name), dtype, nullptr);
  return *this;
}

GraphBuilder& GraphBuilder::input(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  uint32_t v = value(name);
  set_type(v, dtype, &extents);
  values_[v].flags |= BP_VALUE_INPUT;
  values_[v].slot = static_cast<uint32_t>(inputs_.size());
  inputs_.push_back(v);
  return *this;
}

GraphBuilder& GraphBuilder::input(const std::string& name, bp_dtype_t dtype) {
  input(name, dtype, {});
  types_[values_[value(name)].type].rank = -1;
  return *this;
}

GraphBuilder& GraphBuilder::capture(const std::string& name, GraphBuilder& outer) {
  uint32_t v = value(name), source = outer.value(name);
  const bp_type_t& type = outer.types_[outer.values_[source].type];
  set_type(v, type.dtype, nullptr);
  values_[v].outer = source;
  return *this;
}

GraphBuilder& GraphBuilder::sequence(const std::string& name, bp_dtype_t dtype) {
  uint32_t v = value(name);
  types_.push_back({BP_KIND_TENSOR, dtype, -1, 0, BP_NONE, 0});
  auto element = static_cast<uint32_t>(types_.size() - 1);
  types_[values_[v].type] = {BP_KIND_SEQUENCE, BP_DTYPE_UNDEFINED, -1, 0, element, 0};
  return *this;
}

GraphBuilder& GraphBuilder::output(const std::string& name) {
  uint32_t v = value(name);
  values_[v].flags |= BP_VALUE_OUTPUT;
  outputs_.push_back(v);
  return *this;
}

GraphBuilder& GraphBuilder::weight_bytes(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                                         const std::string& bytes) {
  uint32_t v = value(name);
  set_type(v, dtype, &extents);
  values_[v].weight = static_cast<uint32_t>(weights_.size());
  bp_text_t data = text(bytes);
  weights_.push_back({dtype,
                      static_cast<uint32_t>(extents.size()),
                      types_[values_[v].type].first_dim,
                      0,
                      data.size,
                      data.data,
                      {},
                      0,
                      weights_.size()});
  return *this;
}

GraphBuilder& GraphBuilder::node(const std::string& op_type, uint32_t since_version,
                                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                 bp_dtype_t dtype, const Attributes& attributes) {
  bp_node_t node{};
  const size_t colons = op_type.find("::");
  node.op_type = text(colons == std::string::npos ? op_type : op_type.substr(colons + 2));
  node.domain = text(colons == std::string::npos ? "" : op_type.substr(0, colons));
  node.id = nodes_.size();
  node.since_version = since_version;
  node.first_input = static_cast<uint32_t>(operands_.size());
  node.input_count = static_cast<uint32_t>(inputs.size());
  for (const std::string& name : inputs) operands_.push_back(value(name));
  node.first_output = static_cast<uint32_t>(operands_.size());
  node.output_count = static_cast<uint32_t>(outputs.size());
  for (const std::string& name : outputs) {
    uint32_t v = value(name);
    operands_.push_back(v);
    if (v == BP_NONE) continue;
    if (types_[values_[v].type].kind == 0) set_type(v, dtype, nullptr);
    values_[v].producer = static_cast<uint32_t>(nodes_.size());
    values_[v].slot = static_cast<uint32_t>(operands_.size()) - node.first_output - 1;
  }
  node.first_attribute = static_cast<uint32_t>(attributes_.size());
  node.attribute_count = static_cast<uint32_t>(attributes.size());
  for (const auto& [name, held] : attributes) {  // the map is sorted by name, as the ABI requires
    bp_attribute_t attribute{text(name), 0, 1, nullptr};
    if (const auto* i = std::get_if<int64_t>(&held)) {
      attribute.type = BP_ATTR_INT;
      attribute.data = ints_.emplace_back(std::vector<int64_t>{*i}).data();
    } else if (const auto* f = std::get_if<float>(&held)) {
      attribute.type = BP_ATTR_FLOAT;
      attribute.data = floats_.emplace_back(std::vector<float>{*f}).data();
    } else if (const auto* s = std::get_if<std::string>(&held)) {
      attribute.type = BP_ATTR_STRING;
      bp_text_t view = text(*s);
      texts_.emplace_back(reinterpret_cast<const char*>(&view), sizeof(view));
      attribute.data = texts_.back().data();
    } else if (const auto* body = std::get_if<GraphBuilder*>(&held)) {
      attribute.type = BP_ATTR_GRAPH;
      attribute.data = &indices_.emplace_back(static_cast<uint32_t>(bodies_.size()));
      bodies_.push_back(*body);
    } else if (const auto* tensor = std::get_if<TensorOf>(&held)) {
      attribute.type = BP_ATTR_TENSOR;
      attribute.data = &indices_.emplace_back(values_[value(tensor->weight)].weight);
    } else if (const auto* many = std::get_if<std::vector<int64_t>>(&held)) {
      attribute.type = BP_ATTR_INTS;
      attribute.data = ints_.emplace_back(*many).data();
      attribute.count = static_cast<uint32_t>(many->size());
    } else {
      const auto& reals = std::get<std::vector<float>>(held);
      attribute.type = BP_ATTR_FLOATS;
      attribute.data = floats_.emplace_back(reals).data();
      attribute.count = static_cast<uint32_t>(reals.size());
    }
    attributes_.push_back(attribute);
  }
  nodes_.push_back(node);
  return *this;
}

bp_status_t GraphBuilder::weight_map(const bp_graph_t* graph, uint32_t weight, const void** out_data, bp_error_t*) {
  *out_data = graph->weights[weight].data;
  return BP_OK;
}

const bp_graph_t* GraphBuilder::graph() {
  static constexpr bp_graph_api_t kApi = {sizeof(bp_graph_api_t), 0, weight_map, nullptr, nullptr, nullptr};
  uses_.clear();
  for (uint32_t v = 0; v < values_.size(); ++v) {
    values_[v].first_use = static_cast<uint32_t>(uses_.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (uint32_t i = 0; i < nodes_[n].input_count; ++i) {
        if (operands_[nodes_[n].first_input + i] == v) uses_.push_back({n, i});
      }
    }
    values_[v].use_count = static_cast<uint32_t>(uses_.size()) - values_[v].first_use;
  }
  auto count = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  graph_ = {};
  graph_.size = sizeof(graph_);
  graph_.api = &kApi;
  graph_.nodes = nodes_.data(), graph_.node_count = count(nodes_), graph_.node_stride = sizeof(bp_node_t);
  graph_.values = values_.data(), graph_.value_count = count(values_), graph_.value_stride = sizeof(bp_value_t);
  graph_.types = types_.data(), graph_.type_count = count(types_), graph_.type_stride = sizeof(bp_type_t);
  graph_.attributes = attributes_.data(), graph_.attribute_count = count(attributes_),
  graph_.attribute_stride = sizeof(bp_attribute_t);
  graph_.weights = weights_.data(), graph_.weight_count = count(weights_), graph_.weight_stride = sizeof(bp_weight_t);
  graph_.symbols = symbols_.data(), graph_.symbol_count = count(symbols_), graph_.symbol_stride = sizeof(bp_symbol_t);
  graph_.uses = uses_.data(), graph_.use_count = count(uses_);
  graph_.dims = dims_.data(), graph_.dim_count = count(dims_);
  graph_.operands = operands_.data(), graph_.operand_count = count(operands_);
  graph_.inputs = inputs_.data(), graph_.input_count = count(inputs_);
  graph_.outputs = outputs_.data(), graph_.output_count = count(outputs_);
  body_graphs_.clear();
  for (GraphBuilder* body : bodies_) {
    body_graphs_.push_back(body->graph());
    body->graph_.parent = &graph_;
  }
  graph_.subgraphs = body_graphs_.data(), graph_.subgraph_count = count(body_graphs_);
  return &graph_;
}

}  // namespace backplane::cpu::testing
