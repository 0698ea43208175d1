// SPDX-License-Identifier: Apache-2.0
#include "isolate/graph_wire.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/abi.h"

namespace backplane::isolate {
namespace {

constexpr uint32_t kMostNestedGraphs = 64;  // of graphs within graphs
constexpr uint64_t kMostInline = 4096;      // larger weights, in bytes, are not sent with the graph
constexpr uint32_t kMostGraphs = 100'000;   // in one tree

uint64_t element_bytes(uint32_t type) {
  switch (type) {
    case BP_ATTR_FLOAT:
    case BP_ATTR_FLOATS:
      return sizeof(float);
    case BP_ATTR_INT:
    case BP_ATTR_INTS:
      return sizeof(int64_t);
    case BP_ATTR_SPARSE_TENSOR:
    case BP_ATTR_SPARSE_TENSORS:
      return 3 * sizeof(uint32_t);
    default:
      return sizeof(uint32_t);
  }
}

bool is_text(uint32_t type) {
  return type == BP_ATTR_STRING || type == BP_ATTR_STRINGS;
}

// ---- writing --------------------------------------------------------------------------------------------------------

void write_node(const bp_node_t& node, Writer& out) {
  out.text(node.op_type).text(node.domain).text(node.overload).text(node.name).put(node.id).put(node.since_version);
  out.put(node.first_input).put(node.input_count).put(node.first_output).put(node.output_count);
  out.put(node.first_attribute).put(node.attribute_count).put(node.flags);
}

void write_value(const bp_value_t& value, Writer& out) {
  out.text(value.name).put(value.type).put(value.producer).put(value.slot).put(value.weight).put(value.outer);
  out.put(value.first_use).put(value.use_count).put(value.flags);
}

void write_attribute(const bp_attribute_t& attribute, Writer& out) {
  out.text(attribute.name).put(attribute.type);
  if (is_text(attribute.type)) {
    const auto* texts = static_cast<const bp_text_t*>(attribute.data);
    out.put<uint64_t>(attribute.count);
    for (uint32_t i = 0; i < attribute.count; ++i) out.text(texts[i]);
    return;
  }
  out.put<uint64_t>(attribute.count);
  out.array(static_cast<const char*>(attribute.data), attribute.count * element_bytes(attribute.type));
}

void write_weight(const bp_weight_t& weight, Writer& out) {
  out.put(weight.dtype).put(weight.rank).put(weight.first_dim).put(weight.flags).put(weight.bytes).put(weight.id);
  const bool is_inline = weight.data && weight.bytes <= kMostInline;
  out.array(is_inline ? static_cast<const char*>(weight.data) : nullptr, is_inline ? weight.bytes : 0);
}

void write_part(const bp_graph_t& graph, Writer& out, Graphs& graphs) {
  graphs.push_back(&graph);
  out.put(graph.id).put(graph.ir_version).text(graph.name);
  out.put<uint64_t>(graph.node_count);
  for (uint32_t i = 0; i < graph.node_count; ++i) write_node(abi::element(graph.nodes, i, graph.node_stride), out);
  out.put<uint64_t>(graph.value_count);
  for (uint32_t i = 0; i < graph.value_count; ++i) write_value(abi::element(graph.values, i, graph.value_stride), out);
  out.put<uint64_t>(graph.type_count);
  for (uint32_t i = 0; i < graph.type_count; ++i) out.put(abi::element(graph.types, i, graph.type_stride));
  out.put<uint64_t>(graph.attribute_count);
  for (uint32_t i = 0; i < graph.attribute_count; ++i)
    write_attribute(abi::element(graph.attributes, i, graph.attribute_stride), out);
  out.put<uint64_t>(graph.weight_count);
  for (uint32_t i = 0; i < graph.weight_count; ++i)
    write_weight(abi::element(graph.weights, i, graph.weight_stride), out);
  out.put<uint64_t>(graph.symbol_count);
  for (uint32_t i = 0; i < graph.symbol_count; ++i) {
    const bp_symbol_t symbol = abi::element(graph.symbols, i, graph.symbol_stride);
    out.text(symbol.name).put(symbol.min).put(symbol.max);
  }
  out.put<uint64_t>(graph.opset_count);
  for (uint32_t i = 0; i < graph.opset_count; ++i) {
    const bp_opset_t opset = abi::element(graph.opsets, i, graph.opset_stride);
    out.text(opset.domain).put(opset.version);
  }
  out.array(graph.uses, graph.use_count).array(graph.dims, graph.dim_count);
  out.array(graph.operands, graph.operand_count);
  out.array(graph.inputs, graph.input_count).array(graph.outputs, graph.output_count);
  out.put<uint64_t>(graph.subgraph_count);
  for (uint32_t i = 0; i < graph.subgraph_count; ++i) write_part(*graph.subgraphs[i], out, graphs);
}

}  // namespace

Graphs write_graph(const bp_graph_t& subject, Writer& out) {
  const bp_graph_t* root = &subject;
  while (root->parent) root = root->parent;
  Graphs graphs;
  write_part(*root, out, graphs);
  out.put(static_cast<uint32_t>(std::ranges::find(graphs, &subject) - graphs.begin()));
  return graphs;
}

// ---- reading --------------------------------------------------------------------------------------------------------

struct WireGraph::Part {
  WireGraph* tree = nullptr;
  uint32_t number = 0;
  bp_graph_t view{};
  std::vector<bp_node_t> nodes;
  std::vector<bp_value_t> values;
  std::vector<bp_type_t> types;
  std::vector<bp_attribute_t> attributes;
  std::deque<std::vector<uint64_t>> data;  // of attributes, in 8-byte units for alignment
  std::deque<std::vector<bp_text_t>> texts;
  std::vector<bp_weight_t> weights;
  std::vector<bp_symbol_t> symbols;
  std::vector<bp_opset_t> opsets;
  std::vector<bp_use_t> uses;
  std::vector<bp_dim_t> dims;
  std::vector<uint32_t> operands, inputs, outputs;
  std::vector<const bp_graph_t*> subgraphs;

  std::mutex mutex;
  std::map<uint32_t, Mapping> mapped;  // weights that are mapped, by index

  void finish();
};

namespace {

bp_text_t read_text(Reader& in) {
  return abi::text(in.text());
}

bp_node_t read_node(Reader& in) {
  bp_node_t node{};
  node.op_type = read_text(in);
  node.domain = read_text(in);
  node.overload = read_text(in);
  node.name = read_text(in);
  node.id = in.get<uint64_t>();
  for (uint32_t* field : {&node.since_version, &node.first_input, &node.input_count, &node.first_output,
                          &node.output_count, &node.first_attribute, &node.attribute_count, &node.flags})
    *field = in.get<uint32_t>();
  return node;
}

bp_value_t read_value(Reader& in) {
  bp_value_t value{};
  value.name = read_text(in);
  for (uint32_t* field : {&value.type, &value.producer, &value.slot, &value.weight, &value.outer, &value.first_use,
                          &value.use_count, &value.flags})
    *field = in.get<uint32_t>();
  return value;
}

bp_weight_t read_weight(Reader& in) {
  bp_weight_t weight{};
  for (uint32_t* field : {&weight.dtype, &weight.rank, &weight.first_dim, &weight.flags}) *field = in.get<uint32_t>();
  weight.bytes = in.get<uint64_t>();
  weight.id = in.get<uint64_t>();
  const std::string_view bytes = in.text();  // arrays of bytes are written like texts
  in.require(bytes.empty() || bytes.size() == weight.bytes);
  if (!bytes.empty()) weight.data = bytes.data();
  return weight;
}

// Reads a count, then that many items, each of which takes at least `least` bytes.
template <class T, class Read>
std::vector<T> read_list(Reader& in, uint64_t least, Read read) {
  std::vector<T> list;
  const uint64_t count = in.count(least);
  if (count >= BP_NONE) {
    in.fail();
    return list;
  }
  list.reserve(count);
  for (uint64_t i = 0; i < count && in.ok(); ++i) list.push_back(read(in));
  return list;
}

template <class T>
void show(const std::vector<T>& list, const T*& pointer, uint32_t& count, uint32_t& stride) {
  pointer = list.data();
  count = static_cast<uint32_t>(list.size());
  stride = sizeof(T);
}

template <class T>
void show(const std::vector<T>& list, const T*& pointer, uint32_t& count) {
  pointer = list.data();
  count = static_cast<uint32_t>(list.size());
}

bool within(uint64_t first, uint64_t count, uint64_t size) {
  return count == 0 || (first <= size && count <= size - first);
}

bool index_or_none(uint32_t index, uint64_t size) {
  return index == BP_NONE || index < size;
}

bool all_below(const std::vector<uint32_t>& list, uint64_t size, bool none_allowed) {
  return std::ranges::all_of(list, [&](uint32_t i) { return i < size || (none_allowed && i == BP_NONE); });
}

}  // namespace

void WireGraph::Part::finish() {
  view.size = sizeof view;
  view.api = &WireGraph::api();
  view.host = this;
  show(nodes, view.nodes, view.node_count, view.node_stride);
  show(values, view.values, view.value_count, view.value_stride);
  show(types, view.types, view.type_count, view.type_stride);
  show(attributes, view.attributes, view.attribute_count, view.attribute_stride);
  show(weights, view.weights, view.weight_count, view.weight_stride);
  show(symbols, view.symbols, view.symbol_count, view.symbol_stride);
  show(opsets, view.opsets, view.opset_count, view.opset_stride);
  show(uses, view.uses, view.use_count);
  show(dims, view.dims, view.dim_count);
  show(operands, view.operands, view.operand_count);
  show(inputs, view.inputs, view.input_count);
  show(outputs, view.outputs, view.output_count);
  view.subgraphs = subgraphs.data();
  view.subgraph_count = static_cast<uint32_t>(subgraphs.size());
}

bool WireGraph::read_part(Reader& in, uint32_t depth, Part* parent) {
  if (depth > kMostNestedGraphs || parts_.size() >= kMostGraphs) return false;
  Part& part = *parts_.emplace_back(std::make_unique<Part>());
  part.tree = this;
  part.number = static_cast<uint32_t>(parts_.size() - 1);
  part.view.parent = parent ? &parent->view : nullptr;
  part.view.id = in.get<uint64_t>();
  part.view.ir_version = in.get<uint32_t>();
  part.view.name = read_text(in);
  part.nodes = read_list<bp_node_t>(in, 72, read_node);
  part.values = read_list<bp_value_t>(in, 40, read_value);
  part.types = read_list<bp_type_t>(in, sizeof(bp_type_t), [](Reader& from) { return from.get<bp_type_t>(); });
  part.attributes = read_list<bp_attribute_t>(in, 20, [&](Reader& from) {
    bp_attribute_t attribute{};
    attribute.name = read_text(from);
    attribute.type = from.get<uint32_t>();
    if (is_text(attribute.type)) {
      auto& texts = part.texts.emplace_back(read_list<bp_text_t>(from, 8, read_text));
      attribute.count = static_cast<uint32_t>(texts.size());
      attribute.data = texts.data();
      return attribute;
    }
    const auto count = from.get<uint64_t>();
    const std::string_view bytes = from.text();
    const uint64_t each = element_bytes(attribute.type);
    from.require(bytes.size() % each == 0 && bytes.size() / each == count && count < BP_NONE);
    auto& data = part.data.emplace_back((bytes.size() + 7) / 8);
    if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    attribute.count = static_cast<uint32_t>(count);
    attribute.data = data.data();
    return attribute;
  });
  part.weights = read_list<bp_weight_t>(in, 40, read_weight);
  part.symbols = read_list<bp_symbol_t>(in, 24, [](Reader& from) {
    bp_symbol_t symbol{};
    symbol.name = read_text(from);
    symbol.min = from.get<int64_t>();
    symbol.max = from.get<int64_t>();
    return symbol;
  });
  part.opsets = read_list<bp_opset_t>(in, 12, [](Reader& from) {
    bp_opset_t opset{};
    opset.domain = read_text(from);
    opset.version = from.get<uint32_t>();
    return opset;
  });
  part.uses = in.array<bp_use_t>();
  part.dims = in.array<bp_dim_t>();
  part.operands = in.array<uint32_t>();
  part.inputs = in.array<uint32_t>();
  part.outputs = in.array<uint32_t>();
  const uint64_t inside = in.count(1);
  for (uint64_t i = 0; i < inside && in.ok(); ++i) {
    const size_t number = parts_.size();
    if (!read_part(in, depth + 1, &part)) return false;
    part.subgraphs.push_back(&parts_[number]->view);
  }
  part.finish();
  return in.ok() && check(part);
}

bool WireGraph::check(const Part& part) const {
  const uint64_t values = part.values.size(), types = part.types.size(), weights = part.weights.size();
  // `read` checks the upper bound of `outer` once all graphs are complete.
  const uint64_t outer = part.view.parent ? UINT32_MAX : 0;
  for (const bp_node_t& node : part.nodes)
    if (!within(node.first_input, node.input_count, part.operands.size()) ||
        !within(node.first_output, node.output_count, part.operands.size()) ||
        !within(node.first_attribute, node.attribute_count, part.attributes.size()))
      return false;
  for (const bp_value_t& value : part.values)
    if (value.type >= types || !index_or_none(value.producer, part.nodes.size()) ||
        !index_or_none(value.weight, weights) || !index_or_none(value.outer, outer) ||
        !within(value.first_use, value.use_count, part.uses.size()))
      return false;
  for (const bp_type_t& type : part.types)
    if (type.rank > BP_MAX_RANK ||
        (type.rank > 0 && !within(type.first_dim, static_cast<uint64_t>(type.rank), part.dims.size())) ||
        !index_or_none(type.element, types))
      return false;
  for (const bp_weight_t& weight : part.weights)
    if (weight.rank > BP_MAX_RANK || !within(weight.first_dim, weight.rank, part.dims.size())) return false;
  for (const bp_dim_t& dim : part.dims)
    if (!index_or_none(dim.symbol, part.symbols.size())) return false;
  for (const bp_use_t& use : part.uses)
    if (use.node >= part.nodes.size()) return false;
  for (const bp_attribute_t& attribute : part.attributes) {
    const auto* indices = static_cast<const uint32_t*>(attribute.data);
    const auto below = [&](uint64_t count, uint64_t size) {
      return std::all_of(indices, indices + count, [&](uint32_t i) { return i < size; });
    };
    switch (attribute.type) {
      case BP_ATTR_TENSOR:
      case BP_ATTR_TENSORS:
        if (!below(attribute.count, weights)) return false;
        break;
      case BP_ATTR_SPARSE_TENSOR:
      case BP_ATTR_SPARSE_TENSORS:
        for (uint32_t i = 0; i < attribute.count; ++i) {
          const uint32_t* const one = indices + uint64_t{i} * 3;
          if (one[0] >= weights || one[1] >= weights || one[2] >= types) return false;
        }
        break;
      case BP_ATTR_GRAPH:
      case BP_ATTR_GRAPHS:
        if (!below(attribute.count, part.subgraphs.size())) return false;
        break;
      case BP_ATTR_TYPE:
      case BP_ATTR_TYPES:
        if (!below(attribute.count, types)) return false;
        break;
      default:
        break;
    }
  }
  return all_below(part.operands, values, true) && all_below(part.inputs, values, false) &&
         all_below(part.outputs, values, false);
}

Result<std::unique_ptr<WireGraph>> WireGraph::read(std::string bytes, GraphService& service) {
  std::unique_ptr<WireGraph> tree(new WireGraph(std::move(bytes), service));
  Reader in(tree->bytes_);
  bool right = tree->read_part(in, 0, nullptr);
  const auto subject = in.get<uint32_t>();
  right = right && in.complete() && subject < tree->parts_.size();
  for (const auto& part : tree->parts_)
    for (const bp_value_t& value : part->values)
      right = right && (value.outer == BP_NONE || (part->view.parent && value.outer < part->view.parent->value_count));
  if (!right) return Status(BP_CORRUPT, "the graph in a message is damaged");
  tree->subject_ = &tree->parts_[subject]->view;
  return tree;
}

WireGraph::WireGraph(std::string bytes, GraphService& service) : bytes_(std::move(bytes)), service_(service) {}
WireGraph::~WireGraph() = default;

// ---- what plugins call ----------------------------------------------------------------------------------------------

const bp_graph_api_t& WireGraph::api() {
  static const bp_graph_api_t kApi = [] {
    bp_graph_api_t api{};
    api.size = sizeof api;
    api.weight_map = [](const bp_graph_t* graph, uint32_t index, const void** out_data,
                        bp_error_t* error) -> bp_status_t {
      Part& part = *static_cast<Part*>(graph->host);
      if (index >= part.weights.size())
        return Status(BP_INVALID_ARGUMENT, "weight " + std::to_string(index) + " does not exist").write(error);
      const bp_weight_t& weight = part.weights[index];
      if (weight.data || weight.bytes == 0) {
        static const char kNone = 0;
        *out_data = weight.data ? weight.data : &kNone;
        return BP_OK;
      }
      const std::lock_guard lock(part.mutex);
      auto known = part.mapped.find(index);
      if (known == part.mapped.end()) {
        auto mapping = part.tree->service_.weight(part.number, index, weight.bytes);
        if (!mapping.ok()) return mapping.status().write(error);
        known = part.mapped.emplace(index, mapping.take()).first;
      }
      *out_data = known->second.data();
      return BP_OK;
    };
    api.weight_consumed = [](const bp_graph_t* graph, uint32_t index) {
      const Part& part = *static_cast<Part*>(graph->host);
      if (index < part.weights.size() && !part.weights[index].data)
        part.tree->service_.weight_consumed(part.number, index);
    };
    api.weight_hash = [](const bp_graph_t* graph, uint32_t index, uint64_t out_hash[2], bp_error_t* error) {
      const Part& part = *static_cast<Part*>(graph->host);
      return part.tree->service_.weight_hash(part.number, index, out_hash).write(error);
    };
    api.serialize = [](const bp_graph_t* graph, uint64_t external_above, bp_text_sink_t sink, void* context,
                       bp_error_t* error) {
      const Part& part = *static_cast<Part*>(graph->host);
      return part.tree->service_.serialize(part.number, external_above, sink, context).write(error);
    };
    return api;
  }();
  return kApi;
}

}  // namespace backplane::isolate
