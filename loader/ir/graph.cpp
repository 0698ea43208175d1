// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>

#include "base/names.h"

namespace backplane::model {
namespace {

Attribute make(std::string name, uint32_t type, decltype(Attribute::data) data) {
  return {std::move(name), type, std::move(data)};
}

template <class Attributes>
auto place_of(Attributes& attributes, std::string_view name) {
  return std::lower_bound(attributes.begin(), attributes.end(), name,
                          [](const Attribute& a, std::string_view n) { return a.name.compare(n) < 0; });
}

}  // namespace

Attribute Attribute::of(std::string name, int64_t value) {
  return make(std::move(name), BP_ATTR_INT, std::vector<int64_t>{value});
}
Attribute Attribute::of(std::string name, float value) {
  return make(std::move(name), BP_ATTR_FLOAT, std::vector<float>{value});
}
Attribute Attribute::of(std::string name, std::string value) {
  return make(std::move(name), BP_ATTR_STRING, std::vector<std::string>{std::move(value)});
}
Attribute Attribute::of(std::string name, std::vector<int64_t> values) {
  return make(std::move(name), BP_ATTR_INTS, std::move(values));
}
Attribute Attribute::of(std::string name, std::vector<float> values) {
  return make(std::move(name), BP_ATTR_FLOATS, std::move(values));
}

const Attribute* Node::find(std::string_view attribute) const {
  const auto place = place_of(attributes, attribute);
  return place != attributes.end() && place->name == attribute ? &*place : nullptr;
}

int64_t Node::attr(std::string_view attribute, int64_t fallback) const {
  const Attribute* found = find(attribute);
  return found && found->type == BP_ATTR_INT ? found->ints().front() : fallback;
}

float Node::attr(std::string_view attribute, float fallback) const {
  const Attribute* found = find(attribute);
  return found && found->type == BP_ATTR_FLOAT ? found->floats().front() : fallback;
}

std::string Node::attr(std::string_view attribute, const char* fallback) const {
  const Attribute* found = find(attribute);
  return found && found->type == BP_ATTR_STRING ? found->strings().front() : std::string(fallback);
}

void Node::set(Attribute attribute) {
  const auto place = place_of(attributes, attribute.name);
  if (place != attributes.end() && place->name == attribute.name) {
    *place = std::move(attribute);
  } else {
    attributes.insert(place, std::move(attribute));
  }
}

void Node::erase(std::string_view attribute) {
  const auto place = place_of(attributes, attribute);
  if (place != attributes.end() && place->name == attribute) attributes.erase(place);
}

std::string Node::label() const {
  const std::string what = " (" + (domain.empty() ? "" : shortened(domain) + ".") + shortened(op_type) + ")";
  return name.empty() ? "node #" + std::to_string(id) + what : "node " + in_quotes(name) + what;
}

ValueId Graph::add_value(std::string value_name, Type type) {
  values.push_back({std::move(value_name), std::move(type), BP_NONE, BP_NONE});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_constant(std::string value_name, bp_dtype_t dtype, std::vector<int64_t> dims, const void* data,
                            uint64_t bytes, uint64_t id) {
  const char* first = static_cast<const char*>(data);
  Weight weight;
  weight.dtype = dtype;
  weight.dims = std::move(dims);
  weight.owned = std::make_shared<const std::vector<char>>(first, first + bytes);
  weight.data = weight.owned->data();
  weight.bytes = bytes;
  weight.id = id;
  return add_constant(std::move(value_name), std::move(weight));
}

ValueId Graph::add_constant(std::string value_name, Weight weight) {
  const ValueId value = add_value(std::move(value_name), type_of(weight));
  values[value].weight = static_cast<WeightId>(weights.size());
  weights.push_back(std::move(weight));
  return value;
}

const Weight* Graph::weight_of(ValueId value) const {
  if (value == BP_NONE || values[value].weight == BP_NONE) return nullptr;
  return &weights[values[value].weight];
}

namespace {

void copy_into(Graph& to, const Graph& from) {
  to.name = from.name;
  to.nodes = from.nodes;
  to.calls = from.calls;
  to.values = from.values;
  to.weights = from.weights;
  to.symbols = from.symbols;
  to.formulas = from.formulas;
  to.inputs = from.inputs;
  to.outputs = from.outputs;
  to.attribute_types = from.attribute_types;
  for (const auto& body : from.subgraphs) {
    Graph& inner = *to.subgraphs.emplace_back(std::make_unique<Graph>());
    inner.parent = &to;
    copy_into(inner, *body);
  }
}

}  // namespace

std::shared_ptr<Model> copy(const Model& model) {
  auto made = std::make_shared<Model>();
  made->ir_version = model.ir_version;
  made->producer = model.producer;
  made->producer_version = model.producer_version;
  made->domain = model.domain;
  made->doc = model.doc;
  made->version = model.version;
  made->opsets = model.opsets;
  made->metadata = model.metadata;
  for (const Function& f : model.functions)
    made->functions.push_back(
        {f.domain, f.name, f.overload, f.inputs, f.outputs, f.attributes, f.attribute_defaults, f.opsets, nullptr});
  copy_into(made->graph, model.graph);
  made->next_id = model.next_id;
  made->storage = model.storage;
  made->problems = model.problems;
  made->origin = model.origin;
  made->hashes = model.hashes;
  if (model.budget) made->budget = std::make_shared<Budget>(model.budget->fresh());
  return made;
}

void Model::note(std::string problem) {
  constexpr size_t kMost = 256;
  if (problems.size() > kMost || std::ranges::find(problems, problem) != problems.end()) return;
  problems.push_back(problems.size() < kMost ? std::move(problem) : "more problems than these were found");
}

uint64_t size_of(const Type& type) {
  return sizeof type + type.dims.size() * sizeof(bp_dim_t);
}

uint64_t size_of(const Attribute& attribute) {
  uint64_t bytes = sizeof attribute + attribute.name.size();
  std::visit([&](const auto& values) { bytes += values.size() * sizeof values[0]; }, attribute.data);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.data)) {
    for (const std::string& text : *texts) bytes += text.size();
  }
  return bytes;
}

uint64_t size_of(const Node& node) {
  uint64_t bytes = sizeof node + (node.inputs.size() + node.outputs.size()) * sizeof(ValueId) + node.op_type.size() +
                   node.domain.size() + node.name.size() + node.overload.size();
  for (const Attribute& attribute : node.attributes) bytes += size_of(attribute);
  return bytes;
}

Type type_of(const Weight& weight) {
  Type type;
  type.kind = BP_KIND_TENSOR;
  type.dtype = weight.dtype;
  type.rank = static_cast<int32_t>(weight.dims.size());
  for (const int64_t extent : weight.dims) type.dims.push_back({extent, BP_NONE, 0});
  return type;
}

}  // namespace backplane::model
