// SPDX-License-Identifier: Apache-2.0
#include "view/serialize.h"

#include <cstring>
#include <set>
#include <vector>

#include "import/wire.h"

namespace backplane::model {
namespace {

using wire::Writer;

constexpr uint64_t kMost = (uint64_t{1} << 31) - 1;  // maximum bytes of a protobuf message

std::string_view view(bp_text_t text) {
  return {text.data, text.size};
}

// The message of a graph: small fields first, then the weights, whose bytes are not copied.
struct Message {
  std::string head;
  struct Tail {
    std::string head;  // the tensor's message up to its bytes, with its tag and length
    std::string_view bytes;
  };
  std::vector<Tail> tails;

  uint64_t size() const {
    uint64_t sum = head.size();
    for (const Tail& tail : tails) sum += tail.head.size() + tail.bytes.size();
    return sum;
  }
};

// Writes a field's tag and length. The caller appends the content.
void write_tag(std::string& out, uint32_t field, uint64_t length) {
  constexpr uint32_t kLengthDelimited = 2;
  protozero::write_varint(std::back_inserter(out), uint64_t{field} << 3 | kLengthDelimited);
  protozero::write_varint(std::back_inserter(out), length);
}

// How weights are written.
struct Weights {
  bool hashes = false;  // true: each weight's index and hash, in place of its bytes
  // Without `hashes`: weights that lie in files and have more bytes than this are written as references to the files.
  uint64_t external_above = 0;
};

class Serializer {
 public:
  Serializer(const bp_graph_t& graph, Weights weights) : graph_(graph), weights_(weights) {}

  // Writes the graph. ONNX identifies values by name, so values with a missing or duplicate name get a number. `outer`
  // holds the names of the enclosing graph's values, indexed by value; `taken` holds all names used so far.
  Status write(Message& out, const std::vector<std::string>* outer, std::set<std::string>& taken) {
    Writer writer(out.head);
    writer.add_string(field::graph::kName, graph_.name.size ? view(graph_.name) : std::string_view("graph"));
    choose_names(outer, taken);
    for (uint32_t i = 0; i < graph_.node_count; ++i) BP_TRY(write_node(writer, *bp_graph_node(&graph_, i), taken));
    for (uint32_t i = 0; i < graph_.input_count; ++i) write_value(writer, field::graph::kInput, graph_.inputs[i]);
    for (uint32_t i = 0; i < graph_.output_count; ++i) write_value(writer, field::graph::kOutput, graph_.outputs[i]);
    for (uint32_t v = 0; v < graph_.value_count; ++v) {
      const bp_value_t& value = *bp_graph_value(&graph_, v);
      if (value.producer != BP_NONE && !(value.flags & BP_VALUE_OUTPUT) &&
          bp_graph_type(&graph_, value.type)->kind != 0) {
        write_value(writer, field::graph::kValueInfo, v);
      }
    }
    for (uint32_t v = 0; v < graph_.value_count; ++v) {
      const bp_value_t& value = *bp_graph_value(&graph_, v);
      if (value.weight != BP_NONE && (value.use_count > 0 || value.flags & BP_VALUE_OUTPUT)) {
        BP_ASSIGN(Message::Tail tail, tensor(field::graph::kInitializer, value.weight, names_[v]));
        out.tails.push_back(std::move(tail));
      }
    }
    return {};
  }

  static void write_opsets(Writer& writer, const bp_graph_t& graph) {
    for (uint32_t i = 0; i < graph.opset_count; ++i) {
      const bp_opset_t& opset = *bp_graph_opset(&graph, i);
      Writer entry(writer, field::model::kOpsetImport);
      entry.add_string(field::opset::kDomain, view(opset.domain));
      entry.add_int64(field::opset::kVersion, opset.version);
    }
  }

 private:
  void choose_names(const std::vector<std::string>* outer, std::set<std::string>& taken) {
    names_.resize(graph_.value_count);
    for (uint32_t v = 0; v < graph_.value_count; ++v) {
      const bp_value_t& value = *bp_graph_value(&graph_, v);
      if (value.outer != BP_NONE && outer) {
        names_[v] = (*outer)[value.outer];
        continue;
      }
      std::string name(view(value.name));
      while (name.empty() || taken.contains(name)) name = std::string(view(value.name)) + "." + std::to_string(++next_);
      taken.insert(name);
      names_[v] = std::move(name);
    }
  }

  std::string_view name(uint32_t value) const { return value == BP_NONE ? std::string_view() : names_[value]; }

  Status write_node(Writer& graph, const bp_node_t& node, std::set<std::string>& taken) {
    Writer writer(graph, field::graph::kNode);
    for (uint32_t i = 0; i < node.input_count; ++i)
      writer.add_string(field::node::kInput, name(bp_node_input(&graph_, &node, i)));
    for (uint32_t i = 0; i < node.output_count; ++i)
      writer.add_string(field::node::kOutput, name(bp_node_output(&graph_, &node, i)));
    if (node.name.size) writer.add_string(field::node::kName, view(node.name));
    writer.add_string(field::node::kOpType, view(node.op_type));
    if (node.domain.size) writer.add_string(field::node::kDomain, view(node.domain));
    if (node.overload.size) writer.add_string(field::node::kOverload, view(node.overload));
    for (uint32_t i = 0; i < node.attribute_count; ++i) {
      BP_TRY(write_attribute(writer, *bp_graph_attribute(&graph_, node.first_attribute + i), taken));
    }
    return {};
  }

  Status write_attribute(Writer& node, const bp_attribute_t& attribute, std::set<std::string>& taken) {
    namespace f = field::attribute;
    Writer writer(node, field::node::kAttribute);
    writer.add_string(f::kName, view(attribute.name));
    writer.add_int32(f::kType, static_cast<int32_t>(attribute.type));
    const auto* ints = static_cast<const int64_t*>(attribute.data);
    const auto* floats = static_cast<const float*>(attribute.data);
    const auto* texts = static_cast<const bp_text_t*>(attribute.data);
    const auto* indices = static_cast<const uint32_t*>(attribute.data);
    for (uint32_t i = 0; i < attribute.count; ++i) {
      switch (attribute.type) {
        case BP_ATTR_INT:
        case BP_ATTR_INTS:
          writer.add_int64(attribute.type == BP_ATTR_INT ? f::kI : f::kInts, ints[i]);
          break;
        case BP_ATTR_FLOAT:
        case BP_ATTR_FLOATS:
          writer.add_float(attribute.type == BP_ATTR_FLOAT ? f::kF : f::kFloats, floats[i]);
          break;
        case BP_ATTR_STRING:
        case BP_ATTR_STRINGS:
          writer.add_string(attribute.type == BP_ATTR_STRING ? f::kS : f::kStrings, view(texts[i]));
          break;
        case BP_ATTR_TENSOR:
        case BP_ATTR_TENSORS: {
          const uint32_t field = attribute.type == BP_ATTR_TENSOR ? f::kT : f::kTensors;
          BP_ASSIGN(const Message::Tail whole, tensor(field, indices[i], {}));
          append(writer, field, whole);
          break;
        }
        case BP_ATTR_GRAPH:
        case BP_ATTR_GRAPHS: {
          Message body;
          BP_TRY(Serializer(*graph_.subgraphs[indices[i]], weights_).write(body, &names_, taken));
          if (body.size() > kMost)
            return Status(BP_UNSUPPORTED, "the graph of attribute '" + std::string(view(attribute.name)) + "' is " +
                                              std::to_string(body.size()) +
                                              " bytes long in one message, more than ONNX's 2 GB; request external "
                                              "weights");
          std::string bytes = std::move(body.head);
          for (const Message::Tail& tail : body.tails) bytes.append(tail.head).append(tail.bytes);
          writer.add_message(attribute.type == BP_ATTR_GRAPH ? f::kG : f::kGraphs, bytes);
          break;
        }
        case BP_ATTR_TYPE:
        case BP_ATTR_TYPES: {
          Writer type(writer, attribute.type == BP_ATTR_TYPE ? f::kTp : f::kTypeProtos);
          write_type(type, *bp_graph_type(&graph_, indices[i]));
          break;
        }
        case BP_ATTR_SPARSE_TENSOR:
        case BP_ATTR_SPARSE_TENSORS:
          BP_TRY(write_sparse(writer, attribute.type == BP_ATTR_SPARSE_TENSOR ? f::kSparseTensor : f::kSparseTensors,
                              indices + uint64_t{i} * 3));
          break;
        default:
          return Status(BP_UNSUPPORTED, "attribute '" + std::string(view(attribute.name)) + "' has type " +
                                            std::to_string(attribute.type) + ", which is no attribute type of ONNX");
      }
    }
    return {};
  }

  // `parts`: the three indices of a sparse tensor (bp_attribute_t).
  Status write_sparse(Writer& attribute, uint32_t field, const uint32_t* parts) const {
    namespace f = field::sparse;
    Writer writer(attribute, field);
    for (const auto& [part, at] : {std::pair{f::kValues, parts[0]}, {f::kIndices, parts[1]}}) {
      BP_ASSIGN(const Message::Tail whole, tensor(part, at, {}));
      append(writer, part, whole);
    }
    const bp_type_t& dense = *bp_graph_type(&graph_, parts[2]);
    for (int32_t i = 0; i < dense.rank; ++i)
      writer.add_int64(f::kDims, graph_.dims[dense.first_dim + static_cast<uint32_t>(i)].extent);
    return {};
  }

  // Appends `whole`, the message of a tensor, as a field.
  static void append(Writer& writer, uint32_t field, const Message::Tail& whole) {
    std::string bytes = whole.head;
    bytes.append(whole.bytes);
    // The message starts with its own tag and length. They are skipped, because the writer adds the field's.
    wire::Reader reader(bytes);
    reader.next();
    writer.add_message(field, reader.get_view());
  }

  void write_value(Writer& graph, uint32_t field, uint32_t v) const {
    const bp_value_t& value = *bp_graph_value(&graph_, v);
    Writer writer(graph, field);
    writer.add_string(field::value_info::kName, names_[v]);
    const bp_type_t& type = *bp_graph_type(&graph_, value.type);
    if (type.kind == 0) return;
    Writer message(writer, field::value_info::kType);
    write_type(message, type);
  }

  void write_type(Writer& writer, const bp_type_t& type) const {
    namespace f = field::type;
    if (type.kind == BP_KIND_TENSOR || type.kind == BP_KIND_SPARSE_TENSOR) {
      Writer tensor(writer, type.kind == BP_KIND_TENSOR ? f::kTensor : f::kSparseTensor);
      tensor.add_int32(field::tensor_type::kElemType, static_cast<int32_t>(type.dtype));
      if (type.rank < 0) return;
      // Writes the dimensions as raw bytes: an empty message has a meaning here (a scalar, or an unknown extent), but a
      // nested writer would omit it.
      std::string shape;
      Writer dims(shape);
      for (int32_t i = 0; i < type.rank; ++i) {
        const bp_dim_t& dim = graph_.dims[type.first_dim + static_cast<uint32_t>(i)];
        std::string extent;
        Writer entry(extent);
        if (dim.extent >= 0) {
          entry.add_int64(field::dim::kValue, dim.extent);
        } else if (dim.symbol != BP_NONE) {
          entry.add_string(field::dim::kParam, view(bp_graph_symbol(&graph_, dim.symbol)->name));
        }
        dims.add_message(field::shape::kDim, extent);
      }
      tensor.add_message(field::tensor_type::kShape, shape);
      return;
    }
    if (type.element == BP_NONE) return;
    const uint32_t field = type.kind == BP_KIND_SEQUENCE   ? f::kSequence
                           : type.kind == BP_KIND_OPTIONAL ? f::kOptional
                                                           : f::kMap;
    Writer container(writer, field);
    if (type.kind == BP_KIND_MAP) container.add_int32(field::map_type::kKeyType, static_cast<int32_t>(type.dtype));
    Writer element(container,
                   type.kind == BP_KIND_MAP ? field::map_type::kValueType : field::container_type::kElemType);
    write_type(element, *bp_graph_type(&graph_, type.element));
  }

  Result<Message::Tail> tensor(uint32_t field, uint32_t index, std::string_view name) const {
    namespace f = field::tensor;
    const bp_weight_t& weight = *bp_graph_weight(&graph_, index);
    std::string head;
    std::string_view bytes;
    Writer writer(head);
    uint64_t count = 1;
    for (uint32_t i = 0; i < weight.rank; ++i) {
      writer.add_int64(f::kDims, graph_.dims[weight.first_dim + i].extent);
      count *= static_cast<uint64_t>(graph_.dims[weight.first_dim + i].extent);
    }
    writer.add_int32(f::kDataType, static_cast<int32_t>(weight.dtype));
    if (!name.empty()) writer.add_string(f::kName, name);
    if (weights_.hashes) {
      uint64_t parts[3] = {index};
      PluginError error;
      BP_TRY(error.status(graph_.api->weight_hash(&graph_, index, parts + 1, error.get()),
                          "hash of weight " + std::to_string(index)));
      writer.add_bytes(f::kRawData, reinterpret_cast<const char*>(parts), sizeof parts);
    } else if (weight.dtype == BP_DTYPE_STRING) {
      const char* offsets = static_cast<const char*>(weight.data);
      const char* text = offsets + (count + 1) * sizeof(int64_t);
      for (uint64_t i = 0; i < count; ++i) {
        int64_t ends[2];
        std::memcpy(ends, offsets + i * sizeof(int64_t), sizeof ends);
        writer.add_string(f::kStringData, std::string_view(text + ends[0], static_cast<size_t>(ends[1] - ends[0])));
      }
    } else if (weight.bytes > weights_.external_above && weight.file.size) {
      const auto entry = [&](const char* key, std::string_view value) {
        Writer pair(writer, f::kExternalData);
        pair.add_string(field::entry::kKey, key);
        pair.add_string(field::entry::kValue, value);
      };
      entry("location", view(weight.file));
      entry("offset", std::to_string(weight.file_offset));
      entry("length", std::to_string(weight.bytes));
      writer.add_int32(f::kDataLocation, 1);
    } else {
      write_tag(head, f::kRawData, weight.bytes);
      bytes = {static_cast<const char*>(weight.data), weight.bytes};
    }
    std::string outer;
    write_tag(outer, field, head.size() + bytes.size());
    return Message::Tail{outer + head, bytes};
  }

  const bp_graph_t& graph_;
  const Weights weights_;
  std::vector<std::string> names_;
  uint64_t next_ = 0;
};

Status send_model(const bp_graph_t& graph, Weights weights, bp_text_sink_t sink, void* context) {
  Message body;
  std::set<std::string> taken;
  BP_TRY(Serializer(graph, weights).write(body, nullptr, taken));
  if (body.size() > kMost) {
    return Status(BP_UNSUPPORTED, "the graph is " + std::to_string(body.size()) +
                                      " bytes long in one message, more than ONNX's 2 GB; request external weights");
  }
  std::string head;
  Writer writer(head);
  writer.add_int64(field::model::kIrVersion, graph.ir_version);
  writer.add_string(field::model::kProducerName, "backplane");
  Serializer::write_opsets(writer, graph);
  write_tag(head, field::model::kGraph, body.size());
  const auto send = [&](std::string_view piece) {
    if (!piece.empty()) sink(context, {piece.data(), piece.size()});
  };
  send(head);
  send(body.head);
  for (const Message::Tail& tail : body.tails) {
    send(tail.head);
    send(tail.bytes);
  }
  return {};
}

}  // namespace

Status serialize(const bp_graph_t& graph, uint64_t external_above, bp_text_sink_t sink, void* context) {
  return send_model(graph, {.external_above = external_above}, sink, context);
}

Status serialize_identity(const bp_graph_t& graph, bp_text_sink_t sink, void* context) {
  return send_model(graph, {.hashes = true}, sink, context);
}

}  // namespace backplane::model
