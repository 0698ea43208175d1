// SPDX-License-Identifier: Apache-2.0
#include "onnx/exchange.h"

namespace backplane::onnx {
namespace {

// The maximum nesting of a model's types.
constexpr int kMaxDepth = 16;

const bp_container_api_t& containers() {
  const bp_container_api_t* table = api().container_api == nullptr ? nullptr : api().container_api();
  if (table == nullptr)
    throw Error(BP_UNSUPPORTED, "this loader does not support sequences, optionals and maps: install a newer one");
  return *table;
}

void check(bp_status_t status, const char* what) {
  if (status != BP_OK) throw Error(status, std::string(what) + ": " + api().status_name(status));
}

void fill(bp_container_t* container, Value& value) {
  for (size_t i = 0; i < value.elements.size(); ++i) {
    Value& element = value.elements[i];
    const bp_bytes_t key =
        i < value.keys.size() ? bp_bytes_t{value.keys[i].data(), value.keys[i].size()} : bp_bytes_t{};
    if (element.kind == BP_KIND_TENSOR) {
      const bp_tensor_t tensor = element.tensor.as_abi();
      check(containers().append(container, key, &tensor), "a tensor could not be appended to a container");
    } else {
      bp_container_t* child = nullptr;
      check(containers().append_child(container, key, &child), "a container could not be appended to a container");
      fill(child, element);
    }
  }
}

// Copies a tensor from any device's memory to host memory.
Tensor to_host(const Environment& env, bp_tensor_t tensor) {
  std::vector<std::byte> staging;
  if (tensor.buffer.memory != nullptr && tensor.buffer.bytes > 0) {
    staging.resize(tensor.buffer.bytes);
    bp_buffer_t host = {};
    host.address = staging.data();
    host.bytes = staging.size();
    env.copy(tensor.buffer, host, host.bytes);
    tensor.buffer = host;
  }
  return Tensor::copy(tensor);
}

// Converts a container to a Value. A container does not store the type of its elements, so the declared type is needed.
Value read_container(const Environment& env, const bp_graph_t* graph, uint32_t type_index,
                     const bp_container_t* container, int depth) {
  if (type_index >= graph->type_count || depth > kMaxDepth)
    throw Malformed("the declared type of a container is invalid or nested too deeply");
  const bp_type_t& type = *bp_graph_type(graph, type_index);
  Value value;
  value.kind = type.kind;
  const uint64_t count = containers().count(container);
  const bool is_tensor = type.element < graph->type_count && bp_graph_type(graph, type.element)->kind == BP_KIND_TENSOR;
  for (uint64_t i = 0; i < count; ++i) {
    if (is_tensor) {
      bp_tensor_t tensor = {};
      tensor.size = sizeof tensor;
      check(containers().tensor(container, i, &tensor), "an element of a container could not be read");
      value.elements.push_back({BP_KIND_TENSOR, to_host(env, tensor), {}, {}});
    } else {
      bp_container_t* child = nullptr;
      check(containers().child(container, i, &child), "an element of a container could not be read");
      value.elements.push_back(read_container(env, graph, type.element, child, depth + 1));
    }
    if (type.kind == BP_KIND_MAP) {
      bp_bytes_t key = {};
      check(containers().key(container, i, &key), "a key of a map could not be read");
      value.keys.emplace_back(static_cast<const char*>(key.data), key.size);
    }
  }
  return value;
}

}  // namespace

Bound bind_input(Exec& exec, uint32_t input, std::shared_ptr<Value> value) {
  if (value->kind == BP_KIND_TENSOR) {
    const bp_tensor_t tensor = value->tensor.as_abi();
    client::detail::call(api().exec_bind, exec.get(), input, &tensor);
    return value;
  }
  bp_container_t* raw = nullptr;
  client::detail::call(api().container_create, value->kind, &raw);
  const std::shared_ptr<bp_container_t> container(raw, api().container_destroy);
  fill(raw, *value);
  client::detail::call(api().exec_bind_container, exec.get(), input, raw);
  return container;
}

Value read_output(const Environment& env, const Exec& exec, view::Graph graph, uint32_t index) {
  const view::Value output = graph.output(index);
  if (output.is_tensor()) return {BP_KIND_TENSOR, to_host(env, exec.output_view(index)), {}, {}};
  bp_container_t* container = nullptr;
  client::detail::call(api().exec_output_container, exec.get(), index, &container);
  return read_container(env, graph.raw(), output.raw().type, container, 0);
}

}  // namespace backplane::onnx
