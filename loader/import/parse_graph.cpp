// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/parser.h"

namespace backplane::model {
namespace {

// Bytes charged for an empty graph, including the objects that passes and views create for it.
constexpr uint64_t kBytesOfGraph = 4096;

// Appends the elements of a repeated number field, packed or not.
void read_ints(wire::Reader& reader, std::vector<int64_t>& out) {
  if (is_varint(reader)) {
    out.push_back(reader.get_int64());
  } else if (is_bytes(reader)) {
    for (const int64_t value : reader.get_packed_int64()) out.push_back(value);
  } else {
    reader.skip();
  }
}

void read_floats(wire::Reader& reader, std::vector<float>& out) {
  if (is_fixed32(reader)) {
    out.push_back(reader.get_float());
  } else if (is_bytes(reader)) {
    for (const float value : reader.get_packed_float()) out.push_back(value);
  } else {
    reader.skip();
  }
}

void go_deeper(int depth, int limit, const char* what) {
  if (depth > limit) malformed(std::string(what) + " nested deeper than " + std::to_string(limit));
}

}  // namespace

ValueId Parser::declare(std::string_view name, Scope& scope) {
  const auto next = static_cast<ValueId>(scope.graph.values.size());
  const ValueId value = scope.names.find_or_add(name, next);
  if (value == next) {
    charge(sizeof(Value) + 2 * sizeof(std::string_view) + name.size());
    scope.graph.add_value(std::string(name));
  }
  return value;
}

ValueId Parser::resolve(std::string_view name, Scope& scope) {
  if (name.empty()) return BP_NONE;
  if (const ValueId value = scope.names.find(name); value != BP_NONE) return value;
  Scope* owner = scope.outer;
  while (owner && owner->names.find(name) == BP_NONE) owner = owner->outer;
  if (!owner)
    return declare(name, scope);  // the value has no producer: passes/check.cpp reports the node that reads it
  const ValueId outer = resolve(name, *scope.outer);
  const ValueId value = declare(name, scope);
  scope.graph.values[value].outer = outer;
  return value;
}

void Parser::parse_graph(Reader reader, Graph& graph, Scope* outer, int depth) {
  namespace f = field::graph;
  go_deeper(depth, kDepth, "the model's graphs are");
  charge(kBytesOfGraph);
  Scope scope{graph, outer, {}};
  graph.parent = outer ? &outer->graph : nullptr;
  std::vector<Reader> nodes, inputs, outputs, infos, initializers, sparse;
  while (reader.next()) {
    charge(sizeof(Reader));
    if (!is_bytes(reader)) {
      reader.skip();
      continue;
    }
    switch (reader.tag()) {
      case f::kName:
        graph.name = text(reader, "a graph's name");
        break;
      case f::kNode:
        nodes.push_back(reader.get_message());
        break;
      case f::kInput:
        inputs.push_back(reader.get_message());
        break;
      case f::kOutput:
        outputs.push_back(reader.get_message());
        break;
      case f::kValueInfo:
        infos.push_back(reader.get_message());
        break;
      case f::kInitializer:
        initializers.push_back(reader.get_message());
        break;
      case f::kSparseInitializer:
        sparse.push_back(reader.get_message());
        break;
      default:
        reader.skip();
    }
  }
  scope.names.reserve(nodes.size() + inputs.size() + initializers.size());
  graph.values.reserve(nodes.size() + inputs.size() + initializers.size());
  graph.nodes.reserve(nodes.size());
  graph.weights.reserve(initializers.size());

  for (const Reader& input : inputs) {
    const size_t known = graph.values.size();
    const ValueId value = parse_value_info(input, scope, Names::kOwn, depth);
    if (value == BP_NONE) malformed("graph " + in_quotes(graph.name) + " has an input without a name");
    if (value < known)
      malformed("graph " + in_quotes(graph.name) + " has two inputs named " + in_quotes(graph.values[value].name));
    graph.inputs.push_back(value);
  }
  for (const Reader& tensor : initializers) add_initializer(parse_tensor(tensor), scope);
  for (const Reader& tensor : sparse) add_initializer(parse_sparse(tensor), scope);
  // Before IR version 4, initializers had to be graph inputs too.
  const size_t inputs_declared = graph.inputs.size();
  std::erase_if(graph.inputs, [&](ValueId input) { return graph.values[input].weight != BP_NONE; });
  if (model_.ir_version >= 4 && graph.inputs.size() < inputs_declared) {
    model_.note("graph " + in_quotes(graph.name) + " has " + std::to_string(inputs_declared - graph.inputs.size()) +
                " inputs with a default value: they are treated as constants");
  }
  parse_nodes(nodes, scope, depth);
  for (const Reader& info : infos) parse_value_info(info, scope, Names::kKnown, depth);
  for (const Reader& output : outputs) {
    const ValueId value = parse_value_info(output, scope, Names::kAny, depth);
    if (value == BP_NONE) malformed("graph " + in_quotes(graph.name) + " has an output without a name");
    graph.outputs.push_back(value);
  }
}

ValueId Parser::parse_value_info(Reader reader, Scope& scope, Names names, int depth) {
  namespace f = field::value_info;
  std::string_view name;
  Type type;
  while (reader.next()) {
    if (reader.tag() == f::kName && is_bytes(reader)) {
      name = text(reader, "a value's name");
    } else if (reader.tag() == f::kType && is_bytes(reader)) {
      type = parse_type(reader.get_message(), depth);
    } else {
      reader.skip();
    }
  }
  if (name.empty()) return BP_NONE;
  if (names == Names::kKnown && scope.names.find(name) == BP_NONE) return BP_NONE;
  const ValueId id = names == Names::kAny ? resolve(name, scope) : declare(name, scope);
  charge(size_of(type));
  Value& value = scope.graph.values[id];
  if (value.type.kind == 0) value.type = std::move(type);
  return id;
}

void Parser::add_initializer(NamedWeight tensor, Scope& scope) {
  Graph& graph = scope.graph;
  if (tensor.name.empty()) malformed("graph " + in_quotes(graph.name) + " has an initializer without a name");
  Value& value = graph.values[declare(tensor.name, scope)];
  if (value.weight != BP_NONE) {
    malformed("graph " + in_quotes(graph.name) + " has two initializers named " + in_quotes(tensor.name));
  }
  value.type = type_of(tensor.weight);
  value.weight = add_weight(graph, std::move(tensor.weight));
}

// A body may read outputs of later nodes of an outer graph, so all outputs are declared before any node is parsed.
void Parser::parse_nodes(const std::vector<Reader>& nodes, Scope& scope, int depth) {
  std::vector<ValueId> made;
  made.reserve(nodes.size());
  for (const Reader& node : nodes) declare_outputs(node, scope, made);
  const ValueId* next = made.data();
  for (const Reader& node : nodes) parse_node(node, scope, next, depth);
}

void Parser::declare_outputs(Reader node, Scope& scope, std::vector<ValueId>& made) {
  while (node.next(field::node::kOutput)) {
    if (!is_bytes(node)) {
      node.skip();
    } else {
      const std::string_view name = text(node, "a node's output");
      charge(sizeof(ValueId));
      made.push_back(name.empty() ? BP_NONE : declare(name, scope));
    }
  }
}

void Parser::parse_node(Reader reader, Scope& scope, const ValueId*& made, int depth) {
  namespace f = field::node;
  charge(sizeof(Node));
  Node& node = scope.graph.nodes.emplace_back();
  node.id = next_node_++;
  std::vector<Reader> attributes;
  while (reader.next()) {
    charge(sizeof(ValueId));
    if (!is_bytes(reader)) {
      reader.skip();
      continue;
    }
    switch (reader.tag()) {
      case f::kInput:
        node.inputs.push_back(resolve(text(reader, "a node's input"), scope));
        break;
      case f::kOutput:
        node.outputs.push_back(*made++);
        reader.skip();
        break;
      case f::kName:
        node.name = text(reader, "a node's name");
        break;
      case f::kOpType:
        node.op_type = text(reader, "a node's operator");
        break;
      case f::kDomain:
        node.domain = text(reader, "a node's domain");
        break;
      case f::kOverload:
        node.overload = text(reader, "a node's overload");
        break;
      case f::kAttribute:
        charge(sizeof(Reader) + sizeof(Attribute));
        attributes.push_back(reader.get_message());
        break;
      default:
        reader.skip();
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  if (node.op_type.empty()) malformed("node #" + std::to_string(node.id) + " names no operator");
  const bool dense = node.op_type == "Constant" && node.domain.empty();
  node.attributes.reserve(attributes.size());
  for (const Reader& message : attributes) {
    try {
      node.attributes.push_back(parse_attribute(message, scope, dense, depth));
    } catch (Malformed& error) {
      throw Malformed{std::move(error.status).context(node.label()).with_node(node.id)};
    }
  }
  std::sort(node.attributes.begin(), node.attributes.end(),
            [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  const auto twin = std::adjacent_find(node.attributes.begin(), node.attributes.end(),
                                       [](const Attribute& a, const Attribute& b) { return a.name == b.name; });
  if (twin != node.attributes.end()) malformed(node.label() + ": two attributes are named " + in_quotes(twin->name));
}

namespace {

// The elements of an attribute message, by kind.
struct AttributeElements {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::vector<uint32_t> tensors, graphs, sparse, types;
};

// Builds the attribute from the elements that match its type. Elements of other types are dropped.
Attribute make_attribute(std::string_view name, uint32_t type, AttributeElements& all) {
  Attribute attribute{std::string(name), type, {}};
  bool single = false;
  size_t count = 0;
  const auto fill = [&](auto& elements, bool one, size_t units) {
    single = one;
    count = elements.size() / units;
    attribute.data = std::move(elements);
  };
  switch (type) {
    case BP_ATTR_INT:
    case BP_ATTR_INTS:
      if (type == BP_ATTR_INT && all.ints.empty()) all.ints.push_back(0);  // protobuf omits zeros
      fill(all.ints, type == BP_ATTR_INT, 1);
      break;
    case BP_ATTR_FLOAT:
    case BP_ATTR_FLOATS:
      if (type == BP_ATTR_FLOAT && all.floats.empty()) all.floats.push_back(0);
      fill(all.floats, type == BP_ATTR_FLOAT, 1);
      break;
    case BP_ATTR_STRING:
    case BP_ATTR_STRINGS:
      if (type == BP_ATTR_STRING && all.strings.empty()) all.strings.emplace_back();
      fill(all.strings, type == BP_ATTR_STRING, 1);
      break;
    case BP_ATTR_TENSOR:
    case BP_ATTR_TENSORS:
      fill(all.tensors, type == BP_ATTR_TENSOR, 1);
      break;
    case BP_ATTR_GRAPH:
    case BP_ATTR_GRAPHS:
      fill(all.graphs, type == BP_ATTR_GRAPH, 1);
      break;
    case BP_ATTR_SPARSE_TENSOR:
    case BP_ATTR_SPARSE_TENSORS:
      fill(all.sparse, type == BP_ATTR_SPARSE_TENSOR, 3);
      break;
    case BP_ATTR_TYPE:
    case BP_ATTR_TYPES:
      fill(all.types, type == BP_ATTR_TYPE, 1);
      break;
    default:
      malformed("attribute " + in_quotes(name) + " has type " + std::to_string(type) + ", which ONNX does not know");
  }
  if (single && count != 1) {
    malformed("attribute " + in_quotes(name) + " of type " + std::to_string(type) +
              " should hold one element of that type, and holds " + std::to_string(count));
  }
  return attribute;
}

}  // namespace

// If `dense` is set, sparse tensors are converted to dense ones, and Constant's attribute sparse_value is renamed to
// value.
Attribute Parser::parse_attribute(Reader reader, Scope& scope, bool dense, int depth) {
  namespace f = field::attribute;
  Graph& graph = scope.graph;
  std::string_view name, reference;
  uint32_t type = 0, implied = 0;
  AttributeElements elements;
  const auto note = [&implied](uint32_t kind) { implied = kind; };
  while (reader.next()) {
    const uint32_t tag = reader.tag();
    if (tag == f::kType && is_varint(reader)) {
      type = reader.get_uint32();
    } else if (tag == f::kI || tag == f::kInts) {
      read_ints(reader, elements.ints);
      note(tag == f::kI ? BP_ATTR_INT : BP_ATTR_INTS);
    } else if (tag == f::kF || tag == f::kFloats) {
      read_floats(reader, elements.floats);
      note(tag == f::kF ? BP_ATTR_FLOAT : BP_ATTR_FLOATS);
    } else if (!is_bytes(reader)) {
      reader.skip();
    } else if (tag == f::kName) {
      name = text(reader, "an attribute's name");
    } else if (tag == f::kRefAttrName) {
      reference = text(reader, "an attribute's reference");
    } else if (tag == f::kS || tag == f::kStrings) {
      const std::string_view string = reader.get_view();
      charge(sizeof(std::string) + string.size());
      elements.strings.emplace_back(string);
      note(tag == f::kS ? BP_ATTR_STRING : BP_ATTR_STRINGS);
    } else if (tag == f::kT || tag == f::kTensors) {
      elements.tensors.push_back(add_weight(graph, parse_tensor(reader.get_message()).weight));
      note(tag == f::kT ? BP_ATTR_TENSOR : BP_ATTR_TENSORS);
    } else if ((tag == f::kSparseTensor || tag == f::kSparseTensors) && dense) {
      elements.tensors.push_back(add_weight(graph, parse_sparse(reader.get_message()).weight));
      note(BP_ATTR_TENSOR);
    } else if (tag == f::kSparseTensor || tag == f::kSparseTensors) {
      std::vector<int64_t> dims;
      std::string_view unused;
      auto [values, indices] = parse_sparse_parts(reader.get_message(), dims, unused);
      if (dims.size() > BP_MAX_RANK)
        malformed("a sparse tensor in attribute " + in_quotes(name) + " has " + std::to_string(dims.size()) +
                  " dimensions");
      Type dense_type;
      dense_type.kind = BP_KIND_SPARSE_TENSOR;
      dense_type.dtype = values.dtype;
      dense_type.rank = static_cast<int32_t>(dims.size());
      for (const int64_t extent : dims) dense_type.dims.push_back({extent, BP_NONE, 0});
      charge(sizeof(Type) + dims.size() * sizeof(bp_dim_t));
      elements.sparse.push_back(add_weight(graph, std::move(values)));
      elements.sparse.push_back(add_weight(graph, std::move(indices)));
      elements.sparse.push_back(static_cast<uint32_t>(graph.attribute_types.size()));
      graph.attribute_types.push_back(std::move(dense_type));
      note(tag == f::kSparseTensor ? BP_ATTR_SPARSE_TENSOR : BP_ATTR_SPARSE_TENSORS);
    } else if (tag == f::kG || tag == f::kGraphs) {
      auto body = std::make_unique<Graph>();
      parse_graph(reader.get_message(), *body, &scope, depth + 1);
      elements.graphs.push_back(static_cast<uint32_t>(graph.subgraphs.size()));
      graph.subgraphs.push_back(std::move(body));
      note(tag == f::kG ? BP_ATTR_GRAPH : BP_ATTR_GRAPHS);
    } else if (tag == f::kTp || tag == f::kTypeProtos) {
      elements.types.push_back(static_cast<uint32_t>(graph.attribute_types.size()));
      graph.attribute_types.push_back(parse_type(reader.get_message(), depth));
      note(tag == f::kTp ? BP_ATTR_TYPE : BP_ATTR_TYPES);
    } else {
      reader.skip();
    }
  }
  charge(name.size() + elements.ints.size() * sizeof(int64_t) + elements.floats.size() * sizeof(float));
  if (name.empty()) malformed("an attribute of a node or function has no name");
  if (!reference.empty()) return {std::string(name), 0, std::vector<std::string>{std::string(reference)}};
  if (dense && name == "sparse_value") {
    name = "value";
    type = BP_ATTR_TENSOR;
  }
  return make_attribute(name, type == 0 ? implied : type, elements);
}

Type Parser::parse_type(Reader reader, int depth) {
  namespace f = field::type;
  go_deeper(depth, kDepth, "the model's types are");
  Type type;
  while (reader.next()) {
    if (!is_bytes(reader)) {
      reader.skip();
      continue;
    }
    const uint32_t tag = reader.tag();
    const bool tensor = tag == f::kTensor || tag == f::kSparseTensor;
    if (!tensor && tag != f::kSequence && tag != f::kOptional && tag != f::kMap) {
      reader.skip();
      continue;
    }
    charge(sizeof type);
    type = {};
    type.kind = tag == f::kTensor         ? BP_KIND_TENSOR
                : tag == f::kSparseTensor ? BP_KIND_SPARSE_TENSOR
                : tag == f::kSequence     ? BP_KIND_SEQUENCE
                : tag == f::kOptional     ? BP_KIND_OPTIONAL
                                          : BP_KIND_MAP;
    Reader inside = reader.get_message();
    while (inside.next()) {
      const uint32_t part = inside.tag();
      if (tensor && part == field::tensor_type::kElemType && is_varint(inside)) {
        type.dtype = inside.get_uint32();
      } else if (tensor && part == field::tensor_type::kShape && is_bytes(inside)) {
        parse_shape(inside.get_message(), type);
      } else if (tag == f::kMap && part == field::map_type::kKeyType && is_varint(inside)) {
        type.dtype = inside.get_uint32();
      } else if (!tensor && is_bytes(inside) &&
                 part == (tag == f::kMap ? field::map_type::kValueType : field::container_type::kElemType)) {
        type.element = std::make_shared<const Type>(parse_type(inside.get_message(), depth + 1));
      } else {
        inside.skip();
      }
    }
    if (type.dtype > BP_DTYPE_INT2)
      malformed("data type " + std::to_string(type.dtype) + " is not one that this build knows");
    if (!tensor && !type.element) type = {};  // a container without an element type counts as having no type
  }
  return type;
}

void Parser::parse_shape(Reader reader, Type& type) {
  type.rank = 0;
  type.dims.clear();
  while (reader.next()) {
    if (reader.tag() != field::shape::kDim || !is_bytes(reader)) {
      reader.skip();
      continue;
    }
    bp_dim_t dim{-1, BP_NONE, 0};
    Reader part = reader.get_message();
    while (part.next()) {
      if (part.tag() == field::dim::kValue && is_varint(part)) {
        dim.extent = std::max<int64_t>(part.get_int64(), -1);  // some exporters write -1 for "unknown"
      } else if (part.tag() == field::dim::kParam && is_bytes(part)) {
        dim.symbol = symbol(text(part, "a dimension's name"));
      } else {
        part.skip();
      }
    }
    if (dim.extent >= 0) dim.symbol = BP_NONE;
    type.dims.push_back(dim);
    if (++type.rank > BP_MAX_RANK) malformed("a tensor has more than " + std::to_string(BP_MAX_RANK) + " dimensions");
  }
}

uint32_t Parser::symbol(std::string_view name) {
  if (name.empty() || name == "?")
    return BP_NONE;  // exporters write "" and "?" for unknown extents, which need not be equal
  std::vector<Symbol>& all = model_.graph.symbols;
  const auto [place, added] = symbols_.try_emplace(name, static_cast<uint32_t>(all.size()));
  if (added) {
    charge(sizeof(Symbol) + 2 * name.size() + 64);
    all.push_back({std::string(name)});
  }
  return place->second;
}

}  // namespace backplane::model
