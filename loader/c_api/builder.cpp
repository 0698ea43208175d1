// SPDX-License-Identifier: Apache-2.0
#include "import/builder.h"

#include <span>

#include "backplane/loader.h"
#include "c_api/handles.h"

using namespace backplane;
using c_api::fenced;

struct bp_builder_t {
  std::unique_ptr<model::Builder> builder;
  // Whether the model was finished. A model's builder and those of its bodies share this.
  std::shared_ptr<bool> finished = std::make_shared<bool>(false);
  bool is_body = false;
  uint32_t generation = c_api::generation();
};

namespace {

// Checks a builder's handle. BP_BAD_STATE if its model was finished: a body must not change the model any more.
Status usable(const bp_builder_t* builder, const char* name) {
  BP_TRY(c_api::usable(builder, name));
  if (!*builder->finished) return {};
  return {BP_BAD_STATE, std::string(name) + ": its model was finished; create another builder"};
}

// The most outputs of one node. Each gets a value and a name, so an invalid count could exhaust memory.
constexpr uint32_t kMaxOutputs = 1'000'000;

const void* bytes_of(const bp_tensor_t& tensor) {
  return tensor.buffer.address ? static_cast<const char*>(tensor.buffer.address) + tensor.buffer.offset : nullptr;
}

Status check_rank(uint32_t rank, const int64_t* extents, std::string_view name) {
  if (rank > BP_MAX_RANK)
    return {BP_INVALID_ARGUMENT, std::string(name) + ".rank is " + std::to_string(rank) + "; it must be at most " +
                                     std::to_string(BP_MAX_RANK)};
  if (rank && !extents)
    return {BP_INVALID_ARGUMENT, std::string(name) + ".extents is NULL, but the rank is " + std::to_string(rank)};
  return {};
}

Result<bp_tensor_t> read_constant(const bp_tensor_t* tensor, std::string_view name) {
  BP_ASSIGN(const bp_tensor_t known, abi::read(tensor, name));
  BP_TRY(abi::check_buffer(known.buffer, std::string(name) + ".buffer"));
  if (known.layout != BP_LAYOUT_DENSE)
    return Status(BP_UNSUPPORTED, std::string(name) + ".layout is " + std::to_string(known.layout) +
                                      ": a constant must be dense (BP_LAYOUT_DENSE)");
  if (known.buffer.memory)
    return Status(BP_UNSUPPORTED, std::string(name) + ".buffer is device memory: a constant must be in host memory");
  BP_TRY(check_rank(known.rank, known.extents, name));
  return known;
}

Result<model::Attribute> read_attribute(model::Builder& builder, const bp_attribute_t& given) {
  model::Attribute attribute;
  attribute.name = abi::string(given.name);
  attribute.type = given.type;
  const std::string label = "attribute '" + attribute.name + "'";
  if (given.count && !given.data)
    return Status(BP_INVALID_ARGUMENT, label + ": data is NULL, but count is " + std::to_string(given.count));
  const auto copy = [&]<class T>(std::type_identity<T>) {
    const T* first = static_cast<const T*>(given.data);
    return std::vector<T>(first, first + given.count);
  };
  switch (given.type) {
    case BP_ATTR_INT:
    case BP_ATTR_INTS:
      attribute.data = copy(std::type_identity<int64_t>{});
      break;
    case BP_ATTR_FLOAT:
    case BP_ATTR_FLOATS:
      attribute.data = copy(std::type_identity<float>{});
      break;
    case BP_ATTR_STRING:
    case BP_ATTR_STRINGS: {
      std::vector<std::string> strings;
      for (const bp_text_t& text : copy(std::type_identity<bp_text_t>{})) strings.push_back(abi::string(text));
      attribute.data = std::move(strings);
      break;
    }
    case BP_ATTR_TENSOR:
    case BP_ATTR_TENSORS: {
      std::vector<uint32_t> indices;
      for (const bp_tensor_t* tensor : copy(std::type_identity<const bp_tensor_t*>{})) {
        BP_ASSIGN(const bp_tensor_t known, read_constant(tensor, label));
        BP_ASSIGN(const uint32_t index, builder.add_attribute_tensor(known.dtype, {known.extents, known.rank},
                                                                     bytes_of(known), known.buffer.bytes));
        indices.push_back(index);
      }
      attribute.data = std::move(indices);
      break;
    }
    case BP_ATTR_GRAPH:
    case BP_ATTR_GRAPHS: {
      std::vector<uint32_t> indices;
      for (bp_builder_t* body : copy(std::type_identity<bp_builder_t*>{})) {
        BP_TRY(usable(body, label.c_str()));
        BP_ASSIGN(const uint32_t index, builder.add_attribute_body(*body->builder));
        indices.push_back(index);
      }
      attribute.data = std::move(indices);
      break;
    }
    default:
      return Status(BP_UNSUPPORTED,
                    label + " has type " + std::to_string(given.type) + ", which a builder does not accept");
  }
  const bool single = given.type == BP_ATTR_FLOAT || given.type == BP_ATTR_INT || given.type == BP_ATTR_STRING ||
                      given.type == BP_ATTR_TENSOR || given.type == BP_ATTR_GRAPH;
  if (single && given.count != 1)
    return Status(BP_INVALID_ARGUMENT,
                  label + " has " + std::to_string(given.count) + " values, but its type takes one");
  return attribute;
}

}  // namespace

bp_status_t bp_builder_create(bp_env_t* env, const bp_builder_desc_t* desc, bp_builder_t** out_builder,
                              bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_builder, "out_builder"));
    if (env) BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_builder_desc_t known, abi::read(desc, "desc"));
    BP_TRY(abi::check_chain(known.chain));
    BP_TRY(abi::check_flags(known.flags, 0, "desc.flags"));
    BP_TRY(abi::check_array(known.opsets, known.opset_count, known.opset_stride, "desc.opsets"));
    std::map<std::string, uint32_t> versions;
    for (uint32_t i = 0; i < known.opset_count; ++i) {
      const bp_opset_t opset = abi::element(known.opsets, i, known.opset_stride);
      versions[abi::string(opset.domain)] = opset.version;
    }
    BP_ASSIGN(auto builder, model::Builder::create(versions));
    auto made = std::make_unique<bp_builder_t>(bp_builder_t{std::move(builder)});
    model::Owner& owner = made->builder->add_owner();
    owner.self = known.self;
    owner.release = known.release;
    *out_builder = made.release();
    return {};
  });
}

bp_status_t bp_builder_create_body(bp_builder_t* outer, bp_builder_t** out_builder, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_builder, "out_builder"));
    BP_TRY(usable(outer, "outer"));
    *out_builder = new bp_builder_t{outer->builder->create_body(), outer->finished, true};
    return {};
  });
}

void bp_builder_destroy(bp_builder_t* builder) {
  c_api::destroy(builder);
}

bp_status_t bp_builder_input(bp_builder_t* builder, const bp_input_desc_t* input, uint32_t* out_value,
                             bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(usable(builder, "builder"));
    if (!out_value) return {BP_INVALID_ARGUMENT, "out_value is NULL"};
    BP_ASSIGN(const bp_input_desc_t known, abi::read(input, "input"));
    BP_TRY(abi::check_chain(known.chain));
    BP_TRY(abi::check_flags(known.flags, 0, "input.flags"));
    BP_TRY(check_rank(known.rank, known.extents, "input"));
    model::Type type;
    type.kind = BP_KIND_TENSOR;
    type.dtype = known.dtype;
    type.rank = static_cast<int32_t>(known.rank);
    for (uint32_t i = 0; i < known.rank; ++i) {
      const int64_t extent = known.extents[i];
      if (extent < -1)
        return {BP_INVALID_ARGUMENT, "input.extents[" + std::to_string(i) + "] is " + std::to_string(extent) +
                                         ": it must be at least 0, or -1 if it is unknown"};
      const bool is_named = extent == -1 && known.symbols;
      type.dims.push_back({extent, is_named ? builder->builder->symbol(abi::view(known.symbols[i])) : BP_NONE, 0});
    }
    BP_ASSIGN(*out_value, builder->builder->add_input(abi::view(known.name), std::move(type)));
    return {};
  });
}

bp_status_t bp_builder_weight(bp_builder_t* builder, bp_text_t name, const bp_tensor_t* tensor, uint32_t* out_value,
                              bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(usable(builder, "builder"));
    if (!out_value) return {BP_INVALID_ARGUMENT, "out_value is NULL"};
    BP_ASSIGN(const bp_tensor_t known, read_constant(tensor, "tensor"));
    BP_ASSIGN(*out_value, builder->builder->add_weight(abi::view(name), known.dtype, {known.extents, known.rank},
                                                       bytes_of(known), known.buffer.bytes));
    return {};
  });
}

bp_status_t bp_builder_node(bp_builder_t* builder, const bp_node_desc_t* node, uint32_t* out_first_value,
                            bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(usable(builder, "builder"));
    if (!out_first_value) return {BP_INVALID_ARGUMENT, "out_first_value is NULL"};
    BP_ASSIGN(const bp_node_desc_t known, abi::read(node, "node"));
    BP_TRY(abi::check_chain(known.chain));
    if (known.input_count && !known.inputs)
      return {BP_INVALID_ARGUMENT, "node.inputs is NULL, but node.input_count is " + std::to_string(known.input_count)};
    if (known.output_count > kMaxOutputs)
      return {BP_INVALID_ARGUMENT, "node.output_count is " + std::to_string(known.output_count) + "; at most " +
                                       std::to_string(kMaxOutputs) + " are accepted"};
    BP_TRY(abi::check_array(known.attributes, known.attribute_count, known.attribute_stride, "node.attributes"));
    model::Node made;
    made.op_type = abi::string(known.op_type);
    made.domain = abi::string(known.domain);
    made.overload = abi::string(known.overload);
    made.name = abi::string(known.name);
    made.inputs.assign({known.inputs, known.input_count});
    for (uint32_t i = 0; i < known.attribute_count; ++i) {
      BP_ASSIGN(model::Attribute attribute,
                read_attribute(*builder->builder, abi::element(known.attributes, i, known.attribute_stride)));
      made.set(std::move(attribute));
    }
    std::vector<std::string_view> names;
    for (uint32_t i = 0; known.output_names && i < known.output_count; ++i)
      names.push_back(abi::view(known.output_names[i]));
    BP_ASSIGN(*out_first_value, builder->builder->add_node(std::move(made), known.output_count, names));
    return {};
  });
}

bp_status_t bp_builder_output(bp_builder_t* builder, uint32_t value, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(usable(builder, "builder"));
    return builder->builder->add_output(value);
  });
}

bp_status_t bp_builder_finish(bp_builder_t* builder, bp_model_t** out_model, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_model, "out_model"));
    BP_TRY(usable(builder, "builder"));
    *builder->finished = !builder->is_body;
    BP_ASSIGN(auto model, builder->builder->finish());
    *out_model = c_api::wrap(std::move(model));
    return {};
  });
}
