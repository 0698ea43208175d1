// SPDX-License-Identifier: Apache-2.0
#include "container.h"

#include <cstring>

#include "convert.h"

namespace backplane::python {
namespace {

constexpr int kMaxDepth = 16;  // the limit for nested types of a model

const bp_container_api_t& containers() {
  const bp_container_api_t* table = api().container_api == nullptr ? nullptr : api().container_api();
  if (table == nullptr)
    throw Error(BP_UNSUPPORTED, "this loader does not support sequences, optionals and maps: install a newer one");
  return *table;
}

void check(bp_status_t status) {
  if (status != BP_OK)
    throw Error(status,
                std::string("an element of a container could not be read or written: ") + api().status_name(status));
}

const bp_type_t& type_at(const bp_graph_t* graph, uint32_t type, int depth) {
  if (type >= graph->type_count)
    throw Error(BP_INVALID_MODEL, "the model declares no type for a container or its elements");
  if (depth > kMaxDepth)
    throw Error(BP_INVALID_MODEL, "the model declares a container that is nested more than " +
                                      std::to_string(kMaxDepth) + " levels deep");
  return *bp_graph_type(graph, type);
}

// Returns the bytes of a map's key: those of a string, or the 8 bytes of an int64.
std::string key_bytes(bp_dtype_t dtype, nb::handle key, std::string_view name) {
  const bool is_text = dtype == BP_DTYPE_STRING;
  int64_t number = 0;
  if (is_text ? !nb::isinstance<nb::str>(key) : !nb::try_cast<int64_t>(key, number)) {
    const std::string text = std::string(name) + ": the model declares keys of type " + std::string(dtype_name(dtype)) +
                             ", and a key of type '" + nb::type_name(key.type()).c_str() + "' does not fit";
    throw nb::type_error(text.c_str());
  }
  if (is_text) return utf8_of(key);
  std::string bytes(sizeof number, 0);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

nb::object key_object(bp_dtype_t dtype, bp_bytes_t key) {
  if (dtype == BP_DTYPE_STRING) return text_of({static_cast<const char*>(key.data), key.size});
  int64_t number = 0;
  std::memcpy(&number, key.data, std::min<uint64_t>(key.size, sizeof number));
  return nb::int_(number);
}

class Writer {
 public:
  Writer(const Environment& env, const bp_graph_t* graph, std::string_view name)
      : env_(env), graph_(graph), name_(name) {}

  void fill(bp_container_t* to, uint32_t type_index, nb::handle value, int depth) const {
    const bp_type_t& type = type_at(graph_, type_index, depth);
    if (type.kind == BP_KIND_OPTIONAL) {
      if (!value.is_none()) append(to, type, bp_bytes_t{}, value, depth);
      return;
    }
    const bool map = type.kind == BP_KIND_MAP;
    if (map ? !nb::isinstance<nb::dict>(value) : !nb::isinstance<nb::sequence>(value)) {
      const std::string text = std::string(name_) + " is " + type_text(graph_, type_index) + ": a " +
                               (map ? "dict" : "list") + " is expected, not '" + nb::type_name(value.type()).c_str() +
                               "'";
      throw nb::type_error(text.c_str());
    }
    if (map) {
      for (const auto& [key, element] : nb::borrow<nb::dict>(value)) {
        const std::string bytes = key_bytes(type.dtype, key, name_);
        append(to, type, bp_bytes_t{bytes.data(), bytes.size()}, element, depth);
      }
      return;
    }
    for (nb::handle element : value) append(to, type, bp_bytes_t{}, element, depth);
  }

 private:
  void append(bp_container_t* to, const bp_type_t& type, bp_bytes_t key, nb::handle value, int depth) const {
    const bp_type_t& element = type_at(graph_, type.element, depth);
    if (element.kind != BP_KIND_TENSOR) {
      bp_container_t* child = nullptr;
      check(containers().append_child(to, key, &child));
      return fill(child, type.element, value, depth + 1);
    }
    const Argument argument = Argument::of(env_, value, {name_, element.dtype, false, true});
    bp_tensor_t tensor = argument.abi();
    if (tensor.dtype != element.dtype) {
      const std::string text = std::string(name_) + ": an element has type " + std::string(dtype_name(tensor.dtype)) +
                               ", but the model declares " + std::string(dtype_name(element.dtype));
      throw nb::type_error(text.c_str());
    }
    check(containers().append(to, key, &tensor));
  }

  const Environment& env_;
  const bp_graph_t* graph_;
  std::string_view name_;
};

nb::object read(const Environment& env, const bp_graph_t* graph, uint32_t type_index, const bp_container_t* from,
                int depth) {
  const bp_type_t& type = type_at(graph, type_index, depth);
  const bool holds_tensors = type_at(graph, type.element, depth).kind == BP_KIND_TENSOR;
  const auto element = [&](uint64_t i) {
    if (!holds_tensors) {
      bp_container_t* child = nullptr;
      check(containers().child(from, i, &child));
      return read(env, graph, type.element, child, depth + 1);
    }
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    check(containers().tensor(from, i, &tensor));
    nb::object array = copy_to_numpy(env, tensor);
    // Values of maps are usually scalars, such as the score of a class, so they become Python numbers.
    return type.kind == BP_KIND_MAP && tensor.rank == 0 ? nb::object(array.attr("item")()) : array;
  };
  const uint64_t count = containers().count(from);
  if (type.kind == BP_KIND_OPTIONAL) return count == 0 ? nb::object(nb::none()) : element(0);
  if (type.kind == BP_KIND_MAP) {
    nb::dict result;
    for (uint64_t i = 0; i < count; ++i) {
      bp_bytes_t key{};
      check(containers().key(from, i, &key));
      result[key_object(type.dtype, key)] = element(i);
    }
    return result;
  }
  nb::list result;
  for (uint64_t i = 0; i < count; ++i) result.append(element(i));
  return result;
}

}  // namespace

Container make_container(const Environment& env, const bp_graph_t* graph, uint32_t type, nb::handle value,
                         std::string_view name) {
  bp_container_t* raw = nullptr;
  client::detail::call(api().container_create, type_at(graph, type, 0).kind, &raw);
  Container container(raw, api().container_destroy);
  Writer(env, graph, name).fill(raw, type, value, 0);
  return container;
}

nb::object read_container(const Environment& env, const bp_graph_t* graph, uint32_t type,
                          const bp_container_t* container) {
  return read(env, graph, type, container, 0);
}

std::string type_text(const bp_graph_t* graph, uint32_t index) {
  if (index >= graph->type_count) return "?";
  const bp_type_t& type = *bp_graph_type(graph, index);
  switch (type.kind) {
    case BP_KIND_SEQUENCE:
      return "seq(" + type_text(graph, type.element) + ")";
    case BP_KIND_OPTIONAL:
      return "optional(" + type_text(graph, type.element) + ")";
    case BP_KIND_MAP:
      return "map(" + std::string(dtype_name(type.dtype)) + "," + type_text(graph, type.element) + ")";
    case BP_KIND_SPARSE_TENSOR:
      return "sparse_tensor(" + std::string(dtype_name(type.dtype)) + ")";
    default:
      break;
  }
  std::string text(dtype_name(type.dtype));
  if (type.rank < 0) return text + "[...]";
  text += '[';
  for (int32_t i = 0; i < type.rank; ++i) {
    const bp_dim_t& dim = graph->dims[type.first_dim + static_cast<uint32_t>(i)];
    if (i != 0) text += ',';
    if (dim.extent >= 0) {
      text += std::to_string(dim.extent);
    } else {
      text +=
          dim.symbol == BP_NONE ? std::string("?") : std::string(view::text(bp_graph_symbol(graph, dim.symbol)->name));
    }
  }
  return text + ']';
}

}  // namespace backplane::python
