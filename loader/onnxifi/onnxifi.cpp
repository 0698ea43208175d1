// SPDX-License-Identifier: Apache-2.0
// libonnxifi.so: the functions of ONNXIFI 1.0, implemented with loader.h. Arguments are checked in the order in which
// ONNXIFI's header lists the statuses. A call that creates an object and fails sets the output handle to NULL. A call
// that runs a graph does so only after it has found the graph and the fences valid.
#include <cstring>
#include <set>

#include "onnxifi/graph.h"
#include "onnxifi/handles.h"
#include "onnxifi/info.h"

namespace backplane::onnxifi {
namespace {

// Never destroyed, because destructors of the program's static objects may still call this library. Made when the
// library is loaded: a fork during the first use of a static object in a function would leave its guard locked.
template <class T>
Handles<T>& handles = *new Handles<T>;

template <class T>
std::shared_ptr<T> find(void* handle, onnxStatus otherwise) {
  std::shared_ptr<T> object = handles<T>.find(handle);
  if (object == nullptr) throw Failure{otherwise};
  if (is_forked()) throw Failure{ONNXIFI_STATUS_BACKEND_UNAVAILABLE};
  return object;
}

// Removes the object from its table. In a forked child it is not destroyed, because its destructor may wait for a
// thread or a lock of the parent.
template <class T>
std::shared_ptr<T> remove(void* handle) {
  std::shared_ptr<T> object = handles<T>.remove(handle);
  if (object != nullptr && is_forked()) static_cast<void>(new std::shared_ptr<T>(object));
  return object;
}

std::shared_ptr<BackendId> find_id(void* handle) {
  std::shared_ptr<BackendId> id = backend_id(handle);
  if (id == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_ID};
  if (is_forked()) throw Failure{ONNXIFI_STATUS_BACKEND_UNAVAILABLE};
  return id;
}

// Sets `*handle` to the result of `body`, or to NULL if the call fails.
template <class Body>
onnxStatus creating(void** handle, const Body& body) {
  if (handle != nullptr) *handle = nullptr;
  return fenced([&] {
    *handle = body();
    return ONNXIFI_STATUS_SUCCESS;
  });
}

template <class T>
onnxStatus release(void* handle, onnxStatus otherwise) {
  return fenced([&]() -> onnxStatus { return remove<T>(handle) ? ONNXIFI_STATUS_SUCCESS : otherwise; });
}

void check_fence(const onnxMemoryFenceV1& fence) {
  constexpr int32_t kTag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  if (fence.tag != kTag) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_TAG};
  if (fence.type == ONNXIFI_SYNCHRONIZATION_IMPLICIT) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE};
  if (fence.type != ONNXIFI_SYNCHRONIZATION_EVENT) throw Failure{ONNXIFI_STATUS_INVALID_FENCE_TYPE};
}

// Copies of the weights that were passed to onnxInitGraph.
struct Weights {
  std::vector<Described> described;
  std::vector<std::vector<char>> bytes;
  std::vector<bp_tensor_t> tensors;
  std::vector<bp_named_tensor_t> named;
};

std::vector<Described> read_weights(const onnxTensorDescriptorV1* descriptors, uint32_t count) {
  std::vector<Described> result = read(descriptors, count);
  std::set<std::string_view> names;
  for (const Described& one : result) {
    if (one.memory_type != ONNXIFI_MEMORY_TYPE_CPU) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE};
    if (one.name.empty() || !names.insert(one.name).second) throw Failure{ONNXIFI_STATUS_INVALID_NAME};
  }
  return result;
}

// Compares weights with the inputs of the model: first all names, then extents, then types. Must be called before the
// weights are copied, as a descriptor with wrong extents may reach beyond its memory.
void check_weights(const std::vector<Described>& weights, const Model& model) {
  const view::Graph graph = model.graph();
  std::vector<view::Value> inputs;
  for (const Described& one : weights) {
    const uint32_t input = graph.find_input(one.name);
    if (input == BP_NONE) throw Failure{ONNXIFI_STATUS_INVALID_NAME};
    inputs.push_back(graph.input(input));
  }
  for (size_t i = 0; i < weights.size(); ++i) check_shape(inputs[i], weights[i]);
  for (size_t i = 0; i < weights.size(); ++i) check_dtype(inputs[i], weights[i]);
}

std::shared_ptr<const Weights> copy_weights(std::vector<Described> described) {
  auto result = std::make_shared<Weights>();
  result->described = std::move(described);
  for (const Described& one : result->described) {
    const char* first = reinterpret_cast<const char*>(one.buffer);
    result->bytes.emplace_back(first, first + one.bytes());
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = one.dtype;
    tensor.rank = static_cast<uint32_t>(one.extents.size());
    tensor.layout = BP_LAYOUT_DENSE;
    tensor.extents = one.extents.data();
    tensor.buffer.address = result->bytes.back().data();
    tensor.buffer.bytes = one.bytes();
    result->tensors.push_back(tensor);
  }
  for (size_t i = 0; i < result->tensors.size(); ++i)
    result->named.push_back({view::text(result->described[i].name), &result->tensors[i]});
  return result;
}

// The model of onnxInitGraph with its weights. Throws the first status in the order of the header: faults of the model
// itself come before those of descriptors and properties, but after those of pointers.
Model parse_with(const Environment& environment, const uint64_t* properties, size_t bytes, const void* model,
                 uint32_t count, const onnxTensorDescriptorV1* descriptors) {
  // Old clients pass no descriptors and, as `count`, the number of the model's own initializers.
  if (descriptors == nullptr && count != 0 && !has_initializers(bytes, model))
    throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
  const bool has_descriptors = descriptors != nullptr && count != 0;
  if (has_descriptors && has_initializers(bytes, model)) throw Failure{ONNXIFI_STATUS_INVALID_MODEL};
  std::vector<Described> described;
  try {
    described = read_weights(descriptors, has_descriptors ? count : 0);
    if (properties != nullptr && properties[0] != ONNXIFI_GRAPH_PROPERTY_NONE)
      throw Failure{ONNXIFI_STATUS_UNSUPPORTED_PROPERTY};
  } catch (const Failure&) {
    const onnxStatus of_model = fenced([&] {
      parse(environment, bytes, model);
      return ONNXIFI_STATUS_SUCCESS;
    });
    if (of_model == ONNXIFI_STATUS_INVALID_SIZE || of_model == ONNXIFI_STATUS_INVALID_PROTOBUF ||
        of_model == ONNXIFI_STATUS_INVALID_MODEL)
      throw Failure{of_model};
    throw;
  }
  if (!has_descriptors) return parse(environment, bytes, model);
  check_weights(described, parse(environment, bytes, model));
  const std::shared_ptr<const Weights> weights = copy_weights(std::move(described));
  return parse(environment, bytes, model, weights->named, weights);
}

struct Function {
  std::string_view name;
  onnxExtensionFunctionPointer address;
};

template <class T>
onnxExtensionFunctionPointer address(T* function) {
  return reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(function));
}

const Function kFunctions[] = {
    {"onnxGetBackendIDs", address(onnxGetBackendIDs)},
    {"onnxReleaseBackendID", address(onnxReleaseBackendID)},
    {"onnxGetBackendInfo", address(onnxGetBackendInfo)},
    {"onnxGetBackendCompatibility", address(onnxGetBackendCompatibility)},
    {"onnxInitBackend", address(onnxInitBackend)},
    {"onnxReleaseBackend", address(onnxReleaseBackend)},
    {"onnxInitEvent", address(onnxInitEvent)},
    {"onnxSignalEvent", address(onnxSignalEvent)},
    {"onnxGetEventState", address(onnxGetEventState)},
    {"onnxWaitEvent", address(onnxWaitEvent)},
    {"onnxReleaseEvent", address(onnxReleaseEvent)},
    {"onnxInitGraph", address(onnxInitGraph)},
    {"onnxSetGraphIO", address(onnxSetGraphIO)},
    {"onnxRunGraph", address(onnxRunGraph)},
    {"onnxReleaseGraph", address(onnxReleaseGraph)},
    {"onnxGetExtensionFunctionAddress", address(onnxGetExtensionFunctionAddress)},
    {"onnxSetIOAndRunGraph", address(onnxSetIOAndRunGraph)},
};

}  // namespace
}  // namespace backplane::onnxifi

using namespace backplane::onnxifi;  // NOLINT(google-build-using-namespace): the functions of the C interface follow

// ---- backend ids ---------------------------------------------------------------------------------------------------

onnxStatus onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {
  return fenced([&]() -> onnxStatus {
    if (count == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    const auto& all = backend_ids();
    const bool fits = ids != nullptr && *count >= all.size();
    *count = all.size();
    if (!fits) return ONNXIFI_STATUS_FALLBACK;
    for (const auto& [handle, id] : all) {
      id->acquire();
      *ids++ = handle;
    }
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxReleaseBackendID(onnxBackendID id) {
  return fenced([&] {
    const std::shared_ptr<BackendId> found = backend_id(id);
    return found != nullptr && found->release() ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_ID;
  });
}

onnxStatus onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo type, void* value, size_t* size) {
  return fenced([&]() -> onnxStatus {
    const std::shared_ptr<BackendId> backend = find_id(id);
    if (size == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    const std::string answer = info(*backend, type);
    const bool fits = value != nullptr && *size >= answer.size();
    *size = answer.size();
    if (!fits) return ONNXIFI_STATUS_FALLBACK;
    std::memcpy(value, answer.data(), answer.size());
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxGetBackendCompatibility(onnxBackendID id, size_t bytes, const void* model) {
  return fenced([&] {
    const std::shared_ptr<BackendId> backend = find_id(id);
    return compatibility(backend->environment(), backend->device(), parse(backend->environment(), bytes, model));
  });
}

// ---- backends ------------------------------------------------------------------------------------------------------

onnxStatus onnxInitBackend(onnxBackendID id, const uint64_t* properties, onnxBackend* out) {
  return creating(out, [&] {
    const std::shared_ptr<BackendId> backend = find_id(id);
    if (out == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    return handles<Backend>.add(std::make_shared<Backend>(*backend, properties));
  });
}

onnxStatus onnxReleaseBackend(onnxBackend backend) {
  return release<Backend>(backend, ONNXIFI_STATUS_INVALID_BACKEND);
}

// ---- events --------------------------------------------------------------------------------------------------------

onnxStatus onnxInitEvent(onnxBackend backend, onnxEvent* out) {
  return creating(out, [&] {
    find<Backend>(backend, ONNXIFI_STATUS_INVALID_BACKEND);
    if (out == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    return handles<Event>.add(std::make_shared<Event>());
  });
}

onnxStatus onnxSignalEvent(onnxEvent event) {
  return fenced([&] {
    find<Event>(event, ONNXIFI_STATUS_INVALID_EVENT)->signal();
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxGetEventState(onnxEvent event, onnxEventState* state) {
  if (state != nullptr) *state = ONNXIFI_EVENT_STATE_INVALID;
  return fenced([&]() -> onnxStatus {
    const std::shared_ptr<Event> found = find<Event>(event, ONNXIFI_STATUS_INVALID_EVENT);
    if (state == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    *state = found->is_signalled() ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxWaitEvent(onnxEvent event) {
  return fenced([&] { return find<Event>(event, ONNXIFI_STATUS_INVALID_EVENT)->wait(); });
}

onnxStatus onnxReleaseEvent(onnxEvent event) {
  return release<Event>(event, ONNXIFI_STATUS_INVALID_EVENT);
}

// ---- graphs --------------------------------------------------------------------------------------------------------

onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t* properties, size_t bytes, const void* model,
                         uint32_t weight_count, const onnxTensorDescriptorV1* weights, onnxGraph* out) {
  return creating(out, [&] {
    const std::shared_ptr<Backend> found = find<Backend>(backend, ONNXIFI_STATUS_INVALID_BACKEND);
    if (out == nullptr || model == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    const backplane::Model parsed = parse_with(found->environment(), properties, bytes, model, weight_count, weights);
    check_expressible(parsed);
    return handles<Graph>.add(std::make_shared<Graph>(*found, parsed));
  });
}

onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t input_count, const onnxTensorDescriptorV1* inputs,
                          uint32_t output_count, const onnxTensorDescriptorV1* outputs) {
  return fenced([&] {
    const std::shared_ptr<Graph> found = find<Graph>(graph, ONNXIFI_STATUS_INVALID_GRAPH);
    found->unset_io();
    if (outputs == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    const std::vector<Described> in = read(inputs, input_count), out = read(outputs, output_count);
    found->set_io(in, out);
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* before, onnxMemoryFenceV1* after) {
  return fenced([&] {
    if (before == nullptr || after == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    const std::shared_ptr<Graph> found = find<Graph>(graph, ONNXIFI_STATUS_INVALID_GRAPH);
    check_fence(*before);
    check_fence(*after);
    onnxEvent const input = before->event;  // `before` and `after` may be the same fence
    after->event = nullptr;
    after->event = handles<Event>.add(found->run(find<Event>(input, ONNXIFI_STATUS_INVALID_EVENT)));
    return ONNXIFI_STATUS_SUCCESS;
  });
}

onnxStatus onnxReleaseGraph(onnxGraph graph) {
  return fenced([&]() -> onnxStatus {
    const std::shared_ptr<Graph> released = remove<Graph>(graph);
    if (released == nullptr) return ONNXIFI_STATUS_INVALID_GRAPH;
    if (!is_forked()) released->wait_for_runs();  // not in the destructor, which another thread's call may delay
    return ONNXIFI_STATUS_SUCCESS;
  });
}

// ---- extensions ----------------------------------------------------------------------------------------------------

onnxStatus onnxGetExtensionFunctionAddress(onnxBackendID id, const char* name, onnxExtensionFunctionPointer* function) {
  if (function != nullptr) *function = nullptr;
  return fenced([&]() -> onnxStatus {
    if (id != nullptr) find_id(id);  // clients look up functions before they have an id
    if (name == nullptr || function == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    std::string_view wanted = name;
    // Clients may append this, because the name of the function's type ends with it.
    constexpr std::string_view kSuffix = "Function";
    if (wanted.ends_with(kSuffix)) wanted.remove_suffix(kSuffix.size());
    for (const Function& each : kFunctions) {
      if (each.name != wanted) continue;
      *function = each.address;
      return ONNXIFI_STATUS_SUCCESS;
    }
    return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  });
}

onnxStatus onnxSetIOAndRunGraph(onnxGraph graph, uint32_t input_count, const onnxTensorDescriptorV1* inputs,
                                uint32_t output_count, const onnxTensorDescriptorV1* outputs,
                                onnxMemoryFenceV1* after) {
  return fenced([&] {
    const std::shared_ptr<Graph> found = find<Graph>(graph, ONNXIFI_STATUS_INVALID_GRAPH);
    found->unset_io();
    if (outputs == nullptr || after == nullptr || (inputs == nullptr && input_count != 0))
      throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
    check_fence(*after);
    after->event = nullptr;
    const std::vector<Described> in = read(inputs, input_count), out = read(outputs, output_count);
    after->event = handles<Event>.add(found->set_io_and_run(in, out));
    return ONNXIFI_STATUS_SUCCESS;
  });
}
