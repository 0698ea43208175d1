// SPDX-License-Identifier: Apache-2.0
#include "host/graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

namespace backplane::conform {
namespace {

bp_status_t fail(bp_error_t* error, bp_status_t status) {
  if (error != nullptr) error->status = status;
  return status;
}

bp_status_t weight_map(const bp_graph_t* graph, uint32_t weight, const void** out_data, bp_error_t* error) {
  if (graph == nullptr || out_data == nullptr || weight >= graph->weight_count) {
    return fail(error, BP_INVALID_ARGUMENT);
  }
  *out_data = static_cast<const Graph*>(graph->host)->weight(weight);
  return BP_OK;
}

void weight_consumed(const bp_graph_t*, uint32_t) {}

// FNV-1a over type, extents and bytes, from two starting values.
bp_status_t weight_hash(const bp_graph_t* graph, uint32_t weight, uint64_t out_hash[2], bp_error_t* error) {
  if (graph == nullptr || out_hash == nullptr || weight >= graph->weight_count) {
    return fail(error, BP_INVALID_ARGUMENT);
  }
  const bp_weight_t& w = *bp_graph_weight(graph, weight);
  for (uint32_t part = 0; part < 2; ++part) {
    uint64_t hash = 0xcbf29ce484222325u + part;
    const auto add = [&](const void* data, uint64_t size) {
      const auto* bytes = static_cast<const unsigned char*>(data);
      for (uint64_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    };
    add(&w.dtype, sizeof w.dtype);
    for (uint32_t i = 0; i < w.rank; ++i) add(&graph->dims[w.first_dim + i].extent, sizeof(int64_t));
    add(static_cast<const Graph*>(graph->host)->weight(weight), w.bytes);
    out_hash[part] = hash;
  }
  return BP_OK;
}

bp_status_t serialize_graph(const bp_graph_t* graph, uint64_t, bp_text_sink_t sink, void* context, bp_error_t* error) {
  if (graph == nullptr || sink == nullptr) return fail(error, BP_INVALID_ARGUMENT);
  for (uint32_t i = 0; i < graph->type_count; ++i)
    if (bp_graph_type(graph, i)->kind != BP_KIND_TENSOR) return fail(error, BP_UNSUPPORTED);
  const std::string bytes = serialize(static_cast<const Graph*>(graph->host)->spec());
  sink(context, {bytes.data(), bytes.size()});
  return BP_OK;
}

constexpr bp_graph_api_t kApi = {sizeof(bp_graph_api_t), 0, weight_map, weight_consumed, weight_hash, serialize_graph};

std::atomic<uint64_t> next_id{1};

template <class T>
bp_text_t text(const T& string) {
  return {string.data(), string.size()};
}

}  // namespace

Graph::Graph(GraphSpec spec, const Graph* parent, std::string prefix)
    : spec_(std::move(spec)),
      parent_(parent),
      prefix_(std::move(prefix)),
      table_memory_({sizeof(bp_graph_t)}),
      table_(*new (table_memory_[0]) bp_graph_t{}) {
  for (NodeSpec& node : spec_.nodes) {
    std::sort(node.attributes.begin(), node.attributes.end(),
              [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  }
  for (uint32_t i = 0; i < spec_.values.size(); ++i) add_value(i);
  for (uint32_t i = 0; i < spec_.nodes.size(); ++i) add_node(i);
  for (uint32_t i = 0; i < spec_.inputs.size(); ++i) {
    values_[spec_.inputs[i]].flags |= BP_VALUE_INPUT;
    values_[spec_.inputs[i]].slot = i;
  }
  for (const uint32_t output : spec_.outputs) values_[output].flags |= BP_VALUE_OUTPUT;
  add_uses();

  opset_ = {{nullptr, 0}, spec_.opset, 0};
  publish();
}

void Graph::publish() {
  std::vector<size_t> sizes;
  std::vector<const void*> sources;
  const auto add = [&](const auto& array) {
    sizes.push_back(array.size() * sizeof(*array.data()));
    sources.push_back(array.data());
  };
  add(nodes_), add(values_), add(types_), add(attributes_), add(weights_), add(symbols_), add(std::span(&opset_, 1));
  add(uses_), add(dims_), add(operands_), add(spec_.inputs), add(spec_.outputs), add(body_tables_);
  arrays_ = EndOfPage(sizes);
  size_t next = 0;
  const auto take = [&](auto*& pointer, uint32_t& count) {
    const size_t i = next++;
    count = static_cast<uint32_t>(sizes[i] / sizeof *pointer);
    if (count == 0) return;
    std::memcpy(arrays_[i], sources[i], sizes[i]);
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(arrays_[i]);
  };
  const uint64_t id = table_.id != 0 ? table_.id : next_id++;
  table_ = {
      .size = sizeof table_,
      .api = &kApi,
      .id = id,
      .name = text(std::string_view("case")),
      .node_stride = sizeof(bp_node_t),
      .value_stride = sizeof(bp_value_t),
      .type_stride = sizeof(bp_type_t),
      .attribute_stride = sizeof(bp_attribute_t),
      .weight_stride = sizeof(bp_weight_t),
      .symbol_stride = sizeof(bp_symbol_t),
      .opset_stride = sizeof(bp_opset_t),
      .parent = parent_ == nullptr ? nullptr : parent_->table(),
      .host = this,
  };
  take(table_.nodes, table_.node_count);
  take(table_.values, table_.value_count);
  take(table_.types, table_.type_count);
  take(table_.attributes, table_.attribute_count);
  take(table_.weights, table_.weight_count);
  take(table_.symbols, table_.symbol_count);
  take(table_.opsets, table_.opset_count);
  take(table_.uses, table_.use_count);
  take(table_.dims, table_.dim_count);
  take(table_.operands, table_.operand_count);
  take(table_.inputs, table_.input_count);
  take(table_.outputs, table_.output_count);
  take(table_.subgraphs, table_.subgraph_count);
}

void Graph::hide_weights() {
  for (bp_weight_t& weight : weights_) weight.data = nullptr;
  publish();
}

void Graph::allow_refit() {
  for (bp_weight_t& weight : weights_) weight.flags |= BP_WEIGHT_REFIT;
  publish();
}

void Graph::contain(uint32_t value, uint32_t kind, bp_dtype_t key) {
  types_.push_back({kind, key, -1, 0, values_[value].type, 0});
  values_[value].type = static_cast<uint32_t>(types_.size() - 1);
  publish();
}

void Graph::add_value(uint32_t index) {
  const ValueSpec& value = spec_.values[index];
  const auto first_dim = static_cast<uint32_t>(dims_.size());
  for (size_t i = 0; i < value.extents.size(); ++i) {
    dims_.push_back({value.extents[i], i < value.symbols.size() ? symbol(value.symbols[i]) : BP_NONE, 0});
  }
  const auto rank = static_cast<uint32_t>(value.extents.size());
  types_.push_back({BP_KIND_TENSOR, value.dtype, static_cast<int32_t>(rank), first_dim, BP_NONE, 0});
  uint32_t weight = BP_NONE;
  if (value.weight) {
    weight = static_cast<uint32_t>(weights_.size());
    std::vector<std::byte>& bytes = bytes_.emplace_back(1 + value.weight->bytes.size());
    std::copy(value.weight->bytes.begin(), value.weight->bytes.end(), bytes.begin() + 1);
    weights_.push_back({.dtype = value.dtype,
                        .rank = rank,
                        .first_dim = first_dim,
                        .flags = 0,
                        .bytes = bytes.size() - 1,
                        .data = bytes.data() + 1,
                        .file = {nullptr, 0},
                        .file_offset = 0,
                        .id = weight + 1});
  }
  names_.push_back(prefix_ + "v" + std::to_string(index));
  values_.push_back({.name = text(names_.back()),
                     .type = index,
                     .producer = BP_NONE,
                     .slot = BP_NONE,
                     .weight = weight,
                     .outer = value.outer,
                     .first_use = 0,
                     .use_count = 0,
                     .flags = 0});
}

uint32_t Graph::symbol(const std::string& name) {
  if (name.empty()) return BP_NONE;
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    if (std::string_view(symbols_[i].name.data, symbols_[i].name.size) == name) return i;
  }
  names_.push_back(name);
  symbols_.push_back({text(names_.back()), 0, INT64_MAX});
  return static_cast<uint32_t>(symbols_.size() - 1);
}

void Graph::add_node(uint32_t index) {
  const NodeSpec& node = spec_.nodes[index];
  names_.push_back(prefix_ + "n" + std::to_string(index));
  bp_node_t raw = {.op_type = text(node.op_type),
                   .domain = text(node.domain),
                   .overload = {nullptr, 0},
                   .name = text(names_.back()),
                   .id = index + 1,
                   .since_version = node.since_version,
                   .first_input = static_cast<uint32_t>(operands_.size()),
                   .input_count = static_cast<uint32_t>(node.inputs.size())};
  operands_.insert(operands_.end(), node.inputs.begin(), node.inputs.end());
  raw.first_output = static_cast<uint32_t>(operands_.size());
  raw.output_count = static_cast<uint32_t>(node.outputs.size());
  operands_.insert(operands_.end(), node.outputs.begin(), node.outputs.end());
  for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) {
    if (node.outputs[slot] == BP_NONE) continue;
    values_[node.outputs[slot]].producer = index;
    values_[node.outputs[slot]].slot = slot;
  }
  raw.first_attribute = static_cast<uint32_t>(attributes_.size());
  raw.attribute_count = static_cast<uint32_t>(node.attributes.size());
  for (const Attribute& attribute : node.attributes) {
    bp_attribute_t a = {text(attribute.name), 0, 1, nullptr};
    if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
      a.type = BP_ATTR_INT;
      a.data = i;
    } else if (const auto* f = std::get_if<float>(&attribute.value)) {
      a.type = BP_ATTR_FLOAT;
      a.data = f;
    } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
      a.type = BP_ATTR_STRING;
      a.data = &texts_.emplace_back(text(*s));
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
      a.type = BP_ATTR_INTS;
      a.count = static_cast<uint32_t>(ints->size());
      a.data = ints->data();
    } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) {
      a.type = BP_ATTR_FLOATS;
      a.count = static_cast<uint32_t>(floats->size());
      a.data = floats->data();
    } else if (const auto* body = std::get_if<std::shared_ptr<const GraphSpec>>(&attribute.value)) {
      const std::string prefix = prefix_ + "n" + std::to_string(index) + "." + attribute.name + ".";
      a.type = BP_ATTR_GRAPH;
      a.data = &body_indices_.emplace_back(static_cast<uint32_t>(bodies_.size()));
      bodies_.push_back(std::unique_ptr<Graph>(new Graph(**body, this, prefix)));
      body_tables_.push_back(bodies_.back()->table());
    }
    attributes_.push_back(a);
  }
  nodes_.push_back(raw);
}

void Graph::add_uses() {
  for (uint32_t v = 0; v < values_.size(); ++v) {
    values_[v].first_use = static_cast<uint32_t>(uses_.size());
    for (uint32_t n = 0; n < spec_.nodes.size(); ++n) {
      const std::vector<uint32_t>& inputs = spec_.nodes[n].inputs;
      for (uint32_t slot = 0; slot < inputs.size(); ++slot) {
        if (inputs[slot] == v) uses_.push_back({n, slot});
      }
      for (const Attribute& attribute : spec_.nodes[n].attributes) {
        const auto* body = std::get_if<std::shared_ptr<const GraphSpec>>(&attribute.value);
        if (body == nullptr) continue;
        for (const ValueSpec& inner : (*body)->values) {
          if (inner.outer == v) uses_.push_back({n, BP_NONE});
        }
      }
    }
    values_[v].use_count = static_cast<uint32_t>(uses_.size()) - values_[v].first_use;
  }
}

}  // namespace backplane::conform
