// SPDX-License-Identifier: Apache-2.0
#include "runtime/container.h"

#include <unordered_map>

#include "backplane/graph.hpp"
#include "backplane/sdk/fence.hpp"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

void check(bp_status_t status, const char* what) {
  if (status == BP_RESOURCE_EXHAUSTED)
    throw sdk::Error(status, std::string("the host has no memory for its copy of a container: ") + what);
  if (status != BP_OK) throw sdk::Error(status, std::string("the host's container: ") + what);
}

Value read_tensor(const bp_tensor_t& tensor, const bp_type_t& type) {
  if (tensor.dtype != type.dtype) {
    throw sdk::Error(BP_TYPE_MISMATCH, "an element of a container has data type " +
                                           std::string(view::dtype_name(tensor.dtype)) + ", but its declared type is " +
                                           std::string(view::dtype_name(type.dtype)));
  }
  if (tensor.rank > BP_MAX_RANK)
    throw sdk::Error(BP_UNSUPPORTED, "an element of a container has rank " + std::to_string(tensor.rank) +
                                         "; at most " + std::to_string(BP_MAX_RANK) + " is supported");
  if (tensor.layout != BP_LAYOUT_DENSE)
    throw sdk::Error(BP_UNSUPPORTED, "an element of a container has layout " + std::to_string(tensor.layout) +
                                         "; only BP_LAYOUT_DENSE is supported");
  if (tensor.buffer.memory != nullptr)
    throw sdk::Error(BP_UNSUPPORTED, "an element of a container is in device memory; it must be in host memory");
  Shape shape({tensor.extents, tensor.rank});
  if (!countable(shape)) throw_uncountable(shape);
  void* data = tensor.buffer.address == nullptr ? nullptr
                                                : static_cast<std::byte*>(tensor.buffer.address) + tensor.buffer.offset;
  Tensor result{tensor.dtype, shape, data};
  if (tensor.dtype == BP_DTYPE_STRING) {
    if (std::string wrong = check_texts(result, tensor.buffer.bytes); !wrong.empty())
      throw sdk::Error(BP_INVALID_ARGUMENT, "an element of a container: " + wrong);
  } else if (static_cast<uint64_t>(bytes_of(result)) > (data == nullptr ? 0 : tensor.buffer.bytes)) {
    throw sdk::Error(BP_BUFFER_TOO_SMALL, "an element of a container has extents " + to_string(shape) +
                                              ", which need " + std::to_string(bytes_of(result)) +
                                              " bytes; its buffer has " +
                                              std::to_string(data == nullptr ? 0 : tensor.buffer.bytes));
  }
  return Value::of(result);
}

// The memory that the host's copies of containers take. Values share elements, but the host copies them for each value,
// so it may need far more memory than the values do.
class CopySize {
 public:
  // Returns the number of bytes, at most INT64_MAX.
  int64_t of(const Value& container) {
    const Elements* const elements = container.elements.get();
    if (const auto known = known_.find(elements); known != known_.end()) return known->second;
    int64_t bytes = 0;
    const auto add = [&](int64_t more) {
      if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
    };
    for (const Value& element : elements->values) {
      pace_.spend(16);
      add(kElement);
      add(element.kind == BP_KIND_TENSOR ? bytes_of(element.tensor) : of(element));
    }
    for (const std::string& key : elements->keys) add(std::ssize(key));
    known_.emplace(elements, bytes);
    return bytes;
  }

 private:
  static constexpr int64_t kElement = 128;  // an element in addition to its key and data, approximately

  std::unordered_map<const Elements*, int64_t> known_;
  Pace pace_;
};

void write(const bp_container_api_t& api, const Value& value, bp_container_t* container, Pace& pace) {
  size_t number = 0;
  for (const Value& element : value.elements->values) {
    pace.spend(256 + (element.kind == BP_KIND_TENSOR ? bytes_of(element.tensor) / 16 : 0));
    bp_bytes_t key{};
    if (value.kind == BP_KIND_MAP) {
      const std::string& own = value.elements->keys[number++];
      key = {own.data(), own.size()};
    }
    if (element.kind == BP_KIND_TENSOR) {
      const Tensor& tensor = element.tensor;
      bp_tensor_t out{};
      out.size = sizeof(out);
      out.dtype = tensor.dtype;
      out.rank = static_cast<uint32_t>(tensor.shape.rank());
      out.extents = tensor.shape.begin();
      out.buffer.address = tensor.data;
      out.buffer.bytes = static_cast<uint64_t>(bytes_of(tensor));
      check(api.append(container, key, &out), "a tensor was not accepted");
    } else {
      bp_container_t* child = nullptr;
      check(api.append_child(container, key, &child), "a container was not accepted");
      write(api, element, child, pace);
    }
  }
}

}  // namespace

Value read_container(const bp_container_api_t& api, const bp_graph_t& graph, const bp_type_t& type,
                     const bp_container_t* container) {
  Value value = Value::container(type.kind);
  uint64_t count = api.count(container);
  if (type.kind == BP_KIND_OPTIONAL && count > 1)
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "an optional has " + std::to_string(count) + " elements; at most one is allowed");
  if (type.element >= graph.type_count)
    throw sdk::Error(BP_TYPE_MISMATCH, "the elements of a container have no known type");
  const bp_type_t& element = *bp_graph_type(&graph, type.element);
  for (uint64_t i = 0; i < count; ++i) {
    if (element.kind == BP_KIND_TENSOR) {
      bp_tensor_t tensor{};
      tensor.size = sizeof(tensor);
      check(api.tensor(container, i, &tensor), "an element is not the tensor its type declares");
      value.elements->values.push_back(read_tensor(tensor, element));
    } else {
      bp_container_t* child = nullptr;
      check(api.child(container, i, &child), "an element is not the container its type declares");
      value.elements->values.push_back(read_container(api, graph, element, child));
    }
    if (type.kind != BP_KIND_MAP) continue;
    bp_bytes_t key{};
    check(api.key(container, i, &key), "an element of a map has no key");
    if (type.dtype != BP_DTYPE_STRING && key.size != sizeof(int64_t))
      throw sdk::Error(BP_TYPE_MISMATCH,
                       "a key of a map has " + std::to_string(key.size) + " bytes; an INT64 key has 8");
    value.elements->keys.emplace_back(static_cast<const char*>(key.data), key.size);
  }
  return value;
}

void write_container(const bp_container_api_t& api, const Value& value, bp_container_t* container) {
  api.clear(container);
  require_memory(CopySize().of(value), 1);
  Pace pace;
  write(api, value, container, pace);
}

}  // namespace backplane::cpu
