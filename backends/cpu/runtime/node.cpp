// SPDX-License-Identifier: Apache-2.0
#include "runtime/node.h"

#include "runtime/graph_copy.h"
#include "runtime/program.h"

namespace backplane::cpu {

namespace {

constexpr bp_type_t kNoType{0, BP_DTYPE_UNDEFINED, -1, 0, BP_NONE, 0};

bp_type_t type_of(const bp_graph_t& graph, uint32_t value) {
  if (value == BP_NONE) return kNoType;
  uint32_t type = bp_graph_value(&graph, value)->type;
  return type < graph.type_count ? copy_type(graph, type) : kNoType;
}

std::string_view view(bp_text_t text) {
  return {text.data, text.size};
}

template <class T>
std::vector<T> list(const bp_attribute_t* attribute, uint32_t one, uint32_t many) {
  if (attribute == nullptr || (attribute->type != one && attribute->type != many)) return {};
  const T* data = static_cast<const T*>(attribute->data);
  return {data, data + attribute->count};
}

}  // namespace

bp_type_t Node::type_of(uint32_t value) const {
  bp_type_t type = cpu::type_of(*graph_, value);
  if (texts_are_numbers_ && type.kind == BP_KIND_TENSOR && type.dtype == BP_DTYPE_STRING) type.dtype = BP_DTYPE_INT64;
  return type;
}
bp_type_t Node::input_type(uint32_t slot) const {
  return type_of(bp_node_input(graph_, node_, slot));
}
bp_type_t Node::output_type(uint32_t slot) const {
  return type_of(bp_node_output(graph_, node_, slot));
}

double Node::elements(const bp_type_t& type) const {
  if (type.rank < 0) return -1;
  double count = 1;
  for (int32_t d = 0; d < type.rank; ++d) {
    const int64_t extent = graph_->dims[type.first_dim + static_cast<uint32_t>(d)].extent;
    if (extent < 0) return -1;
    count *= static_cast<double>(extent);
  }
  return count;
}

Node Node::with_texts_as_numbers() const {
  Node node = *this;
  node.texts_are_numbers_ = true;
  return node;
}

int64_t Node::input_extent(uint32_t slot, int dim) const {
  bp_type_t type = input_type(slot);
  return dim >= 0 && dim < type.rank ? graph_->dims[type.first_dim + static_cast<uint32_t>(dim)].extent : -1;
}

const bp_attribute_t* Node::find(std::string_view name) const {
  uint32_t low = node_->first_attribute;
  uint32_t high = low + node_->attribute_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const bp_attribute_t* attribute = bp_graph_attribute(graph_, middle);
    int order = view(attribute->name).compare(name);
    if (order == 0) return attribute;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return nullptr;
}

int64_t Node::attr(std::string_view name, int64_t fallback) const {
  const bp_attribute_t* a = find(name);
  return a != nullptr && a->type == BP_ATTR_INT && a->count == 1 ? *static_cast<const int64_t*>(a->data) : fallback;
}

float Node::attr(std::string_view name, float fallback) const {
  const bp_attribute_t* a = find(name);
  return a != nullptr && a->type == BP_ATTR_FLOAT && a->count == 1 ? *static_cast<const float*>(a->data) : fallback;
}

std::string Node::attr(std::string_view name, const char* fallback) const {
  const bp_attribute_t* a = find(name);
  return a != nullptr && a->type == BP_ATTR_STRING && a->count == 1
             ? std::string(view(*static_cast<const bp_text_t*>(a->data)))
             : fallback;
}

std::vector<int64_t> Node::ints(std::string_view name) const {
  return list<int64_t>(find(name), BP_ATTR_INT, BP_ATTR_INTS);
}
std::vector<float> Node::floats(std::string_view name) const {
  return list<float>(find(name), BP_ATTR_FLOAT, BP_ATTR_FLOATS);
}
std::vector<std::string> Node::texts(std::string_view name) const {
  std::vector<std::string> texts;
  for (bp_text_t text : list<bp_text_t>(find(name), BP_ATTR_STRING, BP_ATTR_STRINGS)) texts.emplace_back(view(text));
  return texts;
}

const bp_graph_t* Node::graph_in(std::string_view name) const {
  std::vector<uint32_t> graphs = list<uint32_t>(find(name), BP_ATTR_GRAPH, BP_ATTR_GRAPH);
  return graphs.size() == 1 && graphs[0] < graph_->subgraph_count ? graph_->subgraphs[graphs[0]] : nullptr;
}

const Body& Node::body(std::string_view name) const {
  return program_->add_body(list<uint32_t>(find(name), BP_ATTR_GRAPH, BP_ATTR_GRAPH).at(0));
}

}  // namespace backplane::cpu
