// SPDX-License-Identifier: Apache-2.0
// A vendor's ONNXIFI library for tests. Most files of this folder are libraries that differ from `Traits` in one quirk:
//
//   struct Positional : vendor::Traits { static constexpr bool kByPosition = true; };
//   VENDOR_LIBRARY(Positional)
//
// A library aborts if it is used in a way that a real one would not survive.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "model.h"

namespace vendor {

// Where a run happens: on a thread that waits for the input event, in the call of onnxRunGraph, or in the wait for the
// output event.
enum class Runs { kThread, kInCall, kAtWait };

struct Traits {
  using Descriptor = onnxTensorDescriptorV1;
  static constexpr const char* kName = "Plain";
  static constexpr size_t kBackends = 1;
  static constexpr Runs kRuns = Runs::kThread;
  static constexpr bool kReportsEvent = true;           // a run has an output event
  static constexpr bool kByPosition = false;            // descriptors' names are ignored
  static constexpr bool kReadsDescriptorsLate = false;  // at each run instead of in onnxSetGraphIO
  static constexpr bool kWeightsAsDescriptors = false;
  static constexpr bool kThreadSafe = true;
  static constexpr bool kEmulates = false;  // returns FALLBACK for every supported model
  static constexpr int64_t kIrVersion = 3, kOpset = 8;
  static constexpr bool kHasIndices = false;  // supports Gather, Scatter and OneHot, and int64 tensors
  static bool knows(onnxBackendInfo) { return true; }
  static onnxPointer buffer(const Descriptor& descriptor) { return descriptor.buffer; }
  static uint64_t dtype(const Descriptor& descriptor) { return descriptor.dataType; }
};

[[noreturn]] inline void misuse(const char* what) {
  std::fprintf(stderr, "test library: %s\n", what);
  std::abort();
}

class Event {
 public:
  void signal(onnxStatus status = ONNXIFI_STATUS_SUCCESS) {
    {
      const std::lock_guard lock(mutex_);
      is_signalled_ = true;
      status_ = status;
    }
    changed_.notify_all();
  }
  bool is_signalled() {
    const std::lock_guard lock(mutex_);
    return is_signalled_;
  }
  onnxStatus wait() {
    if (work) std::exchange(work, nullptr)();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_signalled_; });
    return status_;
  }
  std::function<void()> work;  // runs when the event is waited for

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_signalled_ = false;
  onnxStatus status_ = ONNXIFI_STATUS_SUCCESS;
};

template <class Quirk>
class Library {
 public:
  using Descriptor = typename Quirk::Descriptor;

  // Aborts if calls overlap in a library that is not thread-safe.
  class Call {
   public:
    Call() {
      if (!Quirk::kThreadSafe && inside_.exchange(true)) misuse("calls overlap in a library that is not thread-safe");
    }
    ~Call() {
      if (!Quirk::kThreadSafe) inside_ = false;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    static inline std::atomic<bool> inside_{false};
  };

  static onnxStatus get_ids(onnxBackendID* ids, size_t* size) {
    const Call call;
    if (size == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    const bool fits = ids != nullptr && *size >= Quirk::kBackends;
    *size = Quirk::kBackends;
    if (!fits) return ONNXIFI_STATUS_FALLBACK;
    for (size_t i = 0; i < Quirk::kBackends; ++i) ids[i] = id(i);
    return ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus info(onnxBackendID of, onnxBackendInfo type, void* value, size_t* size) {
    const Call call;
    if (!is_id(of)) return ONNXIFI_STATUS_INVALID_ID;
    if (size == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
    if (!Quirk::knows(type)) return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
    const std::string answer = answer_to(of, type);
    if (answer.empty()) return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
    const bool fits = value != nullptr && *size >= answer.size();
    *size = answer.size();
    if (!fits) return ONNXIFI_STATUS_FALLBACK;
    std::memcpy(value, answer.data(), answer.size());
    return ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus compatibility(onnxBackendID of, size_t size, const void* bytes) {
    const Call call;
    if (!is_id(of)) return ONNXIFI_STATUS_INVALID_ID;
    try {
      const Model model(std::string_view(static_cast<const char*>(bytes), size), Quirk::kHasIndices);
      model.check(Quirk::kIrVersion, Quirk::kOpset);
      if (Quirk::kWeightsAsDescriptors && !model.weights.empty()) return ONNXIFI_STATUS_INVALID_MODEL;
    } catch (int status) {
      return status;
    }
    return Quirk::kEmulates ? ONNXIFI_STATUS_FALLBACK : ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus init_backend(onnxBackendID of, onnxBackend* backend) {
    const Call call;
    *backend = nullptr;
    if (!is_id(of)) return ONNXIFI_STATUS_INVALID_ID;
    *backend = &backend_;
    return ONNXIFI_STATUS_SUCCESS;
  }
  static onnxStatus release_backend(onnxBackend backend) {
    const Call call;
    return backend == &backend_ ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_BACKEND;
  }

  static onnxStatus init_event(onnxBackend backend, onnxEvent* event) {
    const Call call;
    if (backend != &backend_) return ONNXIFI_STATUS_INVALID_BACKEND;
    *event = new std::shared_ptr<Event>(std::make_shared<Event>());
    return ONNXIFI_STATUS_SUCCESS;
  }
  static onnxStatus signal_event(onnxEvent event) {
    const Call call;
    if (of(event)->is_signalled()) return ONNXIFI_STATUS_INVALID_STATE;
    of(event)->signal();
    return ONNXIFI_STATUS_SUCCESS;
  }
  static onnxStatus event_state(onnxEvent event, onnxEventState* state) {
    const Call call;
    *state = of(event)->is_signalled() ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
    return ONNXIFI_STATUS_SUCCESS;
  }
  static onnxStatus wait_event(onnxEvent event) {
    const Call call;
    return of(event)->wait();
  }
  static onnxStatus release_event(onnxEvent event) {
    const Call call;
    delete static_cast<std::shared_ptr<Event>*>(event);
    return ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus init_graph(onnxBackend backend, size_t size, const void* bytes, uint32_t weight_count,
                               const Descriptor* weights, onnxGraph* graph) {
    const Call call;
    *graph = nullptr;
    if (backend != &backend_) return ONNXIFI_STATUS_INVALID_BACKEND;
    try {
      auto made = std::make_unique<Graph>(std::string_view(static_cast<const char*>(bytes), size));
      made->model.check(Quirk::kIrVersion, Quirk::kOpset);
      if (Quirk::kWeightsAsDescriptors && !made->model.weights.empty()) return ONNXIFI_STATUS_INVALID_MODEL;
      for (uint32_t i = 0; i < weight_count; ++i) {
        check(weights[i]);
        Tensor& tensor = made->model.weights[weights[i].name];
        tensor = read(weights[i]);
      }
      *graph = made.release();
    } catch (int status) {
      return status;
    }
    return Quirk::kEmulates ? ONNXIFI_STATUS_FALLBACK : ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus set_io(onnxGraph handle, uint32_t input_count, const Descriptor* inputs, uint32_t output_count,
                           const Descriptor* outputs) {
    const Call call;
    return bind(handle, input_count, inputs, output_count, outputs);
  }
  static onnxStatus run(onnxGraph handle, const onnxMemoryFenceV1* before, onnxMemoryFenceV1* after) {
    const Call call;
    return start(handle, before->event, after);
  }
  static onnxStatus set_io_and_run(onnxGraph handle, uint32_t input_count, const Descriptor* inputs,
                                   uint32_t output_count, const Descriptor* outputs, onnxMemoryFenceV1* after) {
    const Call call;
    const onnxStatus status = bind(handle, input_count, inputs, output_count, outputs);
    return status == ONNXIFI_STATUS_SUCCESS ? start(handle, nullptr, after) : status;
  }
  // Drops the descriptors that were set for a graph.
  static void forget(onnxGraph handle) { static_cast<Graph*>(handle)->is_bound = false; }
  static onnxStatus release_graph(onnxGraph handle) {
    const Call call;
    delete static_cast<Graph*>(handle);
    return ONNXIFI_STATUS_SUCCESS;
  }

 private:
  struct Graph {
    explicit Graph(std::string_view bytes) : model(bytes, Quirk::kHasIndices) {}
    ~Graph() {
      if (thread.joinable()) thread.join();
    }
    Model model;
    std::vector<Descriptor> inputs, outputs;                           // copies of the caller's descriptors
    const Descriptor *late_inputs = nullptr, *late_outputs = nullptr;  // the caller's descriptors themselves
    bool is_bound = false;
    std::thread thread;
  };

  static onnxBackendID id(size_t i) { return &backend_ + i; }
  static bool is_id(onnxBackendID of) {
    for (size_t i = 0; i < Quirk::kBackends; ++i) {
      if (of == id(i)) return true;
    }
    return false;
  }
  static std::shared_ptr<Event>& of(onnxEvent event) { return *static_cast<std::shared_ptr<Event>*>(event); }

  static std::string number(uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
  static std::string answer_to(onnxBackendID of, onnxBackendInfo type) {
    switch (type) {
      case ONNXIFI_BACKEND_NAME:
        return Quirk::kName;
      case ONNXIFI_BACKEND_VENDOR:
        return "Test Vendor";
      case ONNXIFI_BACKEND_VERSION:
        return "1.2.3";
      case ONNXIFI_BACKEND_DEVICE:
        return of == id(0) ? "chip 0" : "chip 1";
      case ONNXIFI_BACKEND_DEVICE_TYPE:
        return number(ONNXIFI_DEVICE_TYPE_NPU);
      case ONNXIFI_BACKEND_ONNX_IR_VERSION: {
        std::string text = "1";
        for (int64_t version = 2; version <= Quirk::kIrVersion; ++version) text += " " + std::to_string(version);
        return text;
      }
      case ONNXIFI_BACKEND_OPSET_VERSION:
        return "ai.onnx:7 ai.onnx:" + std::to_string(Quirk::kOpset);
      case ONNXIFI_BACKEND_CAPABILITIES:
        return number(Quirk::kThreadSafe ? ONNXIFI_CAPABILITY_THREAD_SAFE : 0);
      case ONNXIFI_BACKEND_MEMORY_SIZE:
        return number(uint64_t{1} << 30);
      case ONNXIFI_BACKEND_MACS_FP32:
        return number(500'000'000);
      default:
        return {};
    }
  }

  static void check(const Descriptor& descriptor) {
    if (descriptor.tag != ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) throw ONNXIFI_STATUS_UNSUPPORTED_TAG;
    const bool is_index = Quirk::kHasIndices && Quirk::dtype(descriptor) == ONNXIFI_DATATYPE_INT64;
    if (Quirk::dtype(descriptor) != ONNXIFI_DATATYPE_FLOAT32 && !is_index) throw ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
    if (Quirk::buffer(descriptor) == 0) throw ONNXIFI_STATUS_INVALID_MEMORY_LOCATION;
  }
  static Tensor read(const Descriptor& descriptor) {
    Tensor tensor;
    tensor.shape.assign(descriptor.shape, descriptor.shape + descriptor.dimensions);
    tensor.data = numbers(Quirk::dtype(descriptor), reinterpret_cast<const void*>(Quirk::buffer(descriptor)),
                          count(tensor.shape));
    return tensor;
  }

  static onnxStatus bind(onnxGraph handle, uint32_t input_count, const Descriptor* inputs, uint32_t output_count,
                         const Descriptor* outputs) {
    Graph& graph = *static_cast<Graph*>(handle);
    if (graph.thread.joinable()) graph.thread.join();
    graph.is_bound = false;
    try {
      if (input_count != graph.model.free_inputs().size() || output_count != graph.model.outputs.size())
        return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
      for (uint32_t i = 0; i < input_count; ++i) check(inputs[i]);
      for (uint32_t i = 0; i < output_count; ++i) check(outputs[i]);
    } catch (int status) {
      return status;
    }
    graph.inputs.assign(inputs, inputs + input_count);
    graph.outputs.assign(outputs, outputs + output_count);
    graph.late_inputs = inputs;
    graph.late_outputs = outputs;
    graph.is_bound = true;
    return ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus start(onnxGraph handle, onnxEvent before, onnxMemoryFenceV1* after) {
    Graph& graph = *static_cast<Graph*>(handle);
    if (!graph.is_bound) return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
    const std::shared_ptr<Event> input = before == nullptr ? nullptr : of(before);
    const auto output = std::make_shared<Event>();
    after->event = Quirk::kReportsEvent ? new std::shared_ptr<Event>(output) : nullptr;
    switch (Quirk::kRuns) {
      case Runs::kInCall:
        if (input != nullptr && !input->is_signalled()) misuse("runs in the call; the input event is not signaled");
        output->signal(compute(graph));
        break;
      case Runs::kAtWait:
        if (input != nullptr && !input->is_signalled()) misuse("runs at the wait; the input event is not signaled");
        output->work = [&graph, output = output.get()] { output->signal(compute(graph)); };
        break;
      case Runs::kThread:
        if (graph.thread.joinable()) graph.thread.join();
        graph.thread = std::thread([&graph, input, output] {
          if (input != nullptr) input->wait();
          output->signal(compute(graph));
        });
        break;
    }
    return ONNXIFI_STATUS_SUCCESS;
  }

  static onnxStatus compute(Graph& graph) {
    const Descriptor* const inputs = Quirk::kReadsDescriptorsLate ? graph.late_inputs : graph.inputs.data();
    const Descriptor* const outputs = Quirk::kReadsDescriptorsLate ? graph.late_outputs : graph.outputs.data();
    const std::vector<std::string> names = graph.model.free_inputs();
    std::map<std::string, Tensor> values;
    for (size_t i = 0; i < names.size(); ++i) values[Quirk::kByPosition ? names[i] : inputs[i].name] = read(inputs[i]);
    for (const std::string& name : names) {
      if (values.count(name) == 0 || values[name].shape != graph.model.shapes[name])
        return ONNXIFI_STATUS_MISMATCHING_SHAPE;
    }
    graph.model.run(values);
    for (size_t i = 0; i < graph.model.outputs.size(); ++i) {
      const auto found = values.find(Quirk::kByPosition ? graph.model.outputs[i] : outputs[i].name);
      if (found == values.end()) return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
      std::memcpy(reinterpret_cast<void*>(Quirk::buffer(outputs[i])), found->second.data.data(),
                  found->second.data.size() * sizeof(float));
    }
    return ONNXIFI_STATUS_SUCCESS;
  }

  static inline char backend_[Quirk::kBackends] = {};
};

template <class Function>
onnxExtensionFunctionPointer address(Function* function) {
  return reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(function));
}

}  // namespace vendor

#define VENDOR_EXPORT extern "C" __attribute__((visibility("default")))

// Exports the functions that are the same in all libraries: all except onnxInitGraph and those that bind or run a
// graph.
#define VENDOR_COMMON(Quirk)                                                                                       \
  VENDOR_EXPORT onnxStatus onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {                                  \
    return vendor::Library<Quirk>::get_ids(ids, count);                                                            \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxReleaseBackendID(onnxBackendID) {                                                   \
    return ONNXIFI_STATUS_SUCCESS;                                                                                 \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo type, void* value, size_t* size) { \
    return vendor::Library<Quirk>::info(id, type, value, size);                                                    \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxGetBackendCompatibility(onnxBackendID id, size_t size, const void* model) {         \
    return vendor::Library<Quirk>::compatibility(id, size, model);                                                 \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxInitBackend(onnxBackendID id, const uint64_t*, onnxBackend* backend) {              \
    return vendor::Library<Quirk>::init_backend(id, backend);                                                      \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxReleaseBackend(onnxBackend backend) {                                               \
    return vendor::Library<Quirk>::release_backend(backend);                                                       \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxInitEvent(onnxBackend backend, onnxEvent* event) {                                  \
    return vendor::Library<Quirk>::init_event(backend, event);                                                     \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxSignalEvent(onnxEvent event) {                                                      \
    return vendor::Library<Quirk>::signal_event(event);                                                            \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxGetEventState(onnxEvent event, onnxEventState* state) {                             \
    return vendor::Library<Quirk>::event_state(event, state);                                                      \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxWaitEvent(onnxEvent event) {                                                        \
    return vendor::Library<Quirk>::wait_event(event);                                                              \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxReleaseEvent(onnxEvent event) {                                                     \
    return vendor::Library<Quirk>::release_event(event);                                                           \
  }                                                                                                                \
  VENDOR_EXPORT onnxStatus onnxReleaseGraph(onnxGraph graph) {                                                     \
    return vendor::Library<Quirk>::release_graph(graph);                                                           \
  }

#define VENDOR_INIT_GRAPH(Quirk)                                                                                    \
  VENDOR_EXPORT onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t*, size_t size, const void* model,      \
                                         uint32_t count, const onnxTensorDescriptorV1* weights, onnxGraph* graph) { \
    return vendor::Library<Quirk>::init_graph(backend, size, model, count, weights, graph);                         \
  }

#define VENDOR_RUNS(Quirk)                                                                                            \
  VENDOR_EXPORT onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputs, const onnxTensorDescriptorV1* in,         \
                                          uint32_t outputs, const onnxTensorDescriptorV1* out) {                      \
    return vendor::Library<Quirk>::set_io(graph, inputs, in, outputs, out);                                           \
  }                                                                                                                   \
  VENDOR_EXPORT onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* before, onnxMemoryFenceV1* after) { \
    return vendor::Library<Quirk>::run(graph, before, after);                                                         \
  }

#define VENDOR_LIBRARY(Quirk) VENDOR_COMMON(Quirk) VENDOR_INIT_GRAPH(Quirk) VENDOR_RUNS(Quirk)
