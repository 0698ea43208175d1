// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>

#include "downgrade.h"
#include "status.h"

namespace onnxifi_backend {
namespace {

using namespace backplane::sdk;

constexpr uint64_t kMaxModelBytes = (uint64_t{1} << 31) - 1;  // protobuf's limit for a message

Described describe(const OnnxModel& onnx_model, const Value& value) {
  const Shape extents = value.extents();
  return {onnx_model.name(value), value.dtype(), {extents.begin(), extents.end()}};
}

std::vector<Described> describe(const OnnxModel& onnx_model, const std::vector<Value>& values) {
  std::vector<Described> result;
  for (const Value& value : values) result.push_back(describe(onnx_model, value));
  return result;
}

onnxMemoryFenceV1 fence_of(onnxEvent event) {
  onnxMemoryFenceV1 fence{};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  fence.event = event;
  return fence;
}

}  // namespace

// An input event that is signaled from the start, because the host orders the runs itself.
class IslandProgram::Event {
 public:
  explicit Event(const IslandProgram& program) : program_(program) {
    const Functions& call = program.functions_;
    program.device_.check(call.init_event(program.device_.backend(), &event_), "onnxInitEvent");
    if (event_ == nullptr)
      throw Error(BP_INTERNAL, "onnxInitEvent of the ONNXIFI library succeeded and returned no event");
    const onnxStatus status = call.signal_event(event_);
    if (status == ONNXIFI_STATUS_SUCCESS) return;
    call.release_event(event_);
    program.device_.check(status, "onnxSignalEvent");
  }
  ~Event() { program_.functions_.release_event(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  onnxEvent get() const { return event_; }

 private:
  const IslandProgram& program_;
  onnxEvent event_ = nullptr;
};

// ---- compiling -----------------------------------------------------------------------------------------------------

IslandProgram::IslandProgram(const Device& device, const Compile& what)
    : StreamedProgram(device, what),
      device_(device),
      functions_(device.library().functions()),
      inputs_(describe(OnnxModel(what.graph()), what.graph().inputs())),
      outputs_(describe(OnnxModel(what.graph()), what.graph().outputs())),
      set_io_and_run_(reinterpret_cast<SetIoAndRun>(
          reinterpret_cast<void (*)()>(device.library().extension(device.backend_id(), "onnxSetIOAndRunGraph")))),
      locations_{Locations{Descriptors(device.library().is_fork(), inputs_),
                           Descriptors(device.library().is_fork(), outputs_)},
                 Locations{Descriptors(device.library().is_fork(), inputs_),
                           Descriptors(device.library().is_fork(), outputs_)}} {
  if (device.backend() == nullptr) throw Error(BP_UNSUPPORTED, "the ONNXIFI library returned no backend");
  OnnxModel onnx_model(what.graph());
  if (std::string why = downgrade(onnx_model, device.versions().opsets.at("")); !why.empty())
    throw Error(BP_UNSUPPORTED, std::move(why));
  what.check_cancelled();
  onnxStatus status = ONNXIFI_STATUS_INVALID_MODEL;
  if (device.weights() != Weights::kDescriptors) status = init_with_weights_inside(onnx_model);
  const bool has_weights = !onnx_model.weights().empty() || !onnx_model.constants().empty();
  const bool may_retry = reason_of(status) != BP_REASON_MEMORY && status != ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
  if (!accepted(status) && may_retry && (has_weights || device.weights() == Weights::kDescriptors) &&
      device.weights() != Weights::kModel) {
    const onnxStatus again = init_with_descriptors(onnx_model, what);
    if (accepted(again) || device.weights() == Weights::kDescriptors) status = again;
  }
  if (!accepted(status)) device.check(status, "onnxInitGraph");
  if (graph_ == nullptr)
    throw Error(BP_INTERNAL, "onnxInitGraph of the ONNXIFI library succeeded and returned no graph");
}

IslandProgram::~IslandProgram() {
  const std::unique_lock<std::mutex> lock = device_.library().guard();
  if (graph_ != nullptr) functions_.release_graph(graph_);
}

PASSES_THE_FORKS_ARGUMENTS onnxStatus IslandProgram::init_with_weights_inside(OnnxModel& onnx_model) {
  uint64_t bytes = 0;
  const std::vector<Value> weights = onnx_model.weights();
  for (const Value& weight : weights) bytes += weight.weight()->bytes;
  if (bytes > kMaxModelBytes) return ONNXIFI_STATUS_INVALID_SIZE;
  const std::string model = onnx_model.bytes(device_.versions(), OnnxModel::kAll);
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  {
    const std::unique_lock<std::mutex> lock = device_.library().guard();
    status =
        functions_.init_graph(device_.backend(), nullptr, model.size(), model.data(), 0, nullptr, &graph_, 0, nullptr);
  }
  // The library has its own copy of the weights now.
  for (const Value& weight : weights) {
    if (accepted(status)) graph().raw()->api->weight_consumed(graph().raw(), weight.raw().weight);
  }
  return status;
}

PASSES_THE_FORKS_ARGUMENTS onnxStatus IslandProgram::init_with_descriptors(OnnxModel& onnx_model, const Compile& what) {
  constexpr uintptr_t kAlignment = 16;
  std::vector<Described> described;
  std::vector<const void*> data;
  for (const Value& weight : onnx_model.weights()) {
    if (!is_expressible(weight.dtype()) || weight.weight()->bytes == 0) return ONNXIFI_STATUS_INVALID_DATATYPE;
    described.push_back(describe(onnx_model, weight));
    const char* bytes = static_cast<const char*>(what.weight(weight.raw().weight));
    if (reinterpret_cast<uintptr_t>(bytes) % kAlignment != 0)
      bytes = weights_.emplace_back(bytes, bytes + weight.weight()->bytes).data();
    data.push_back(bytes);
  }
  for (const std::unique_ptr<Constant>& constant : onnx_model.constants()) {
    if (constant->bytes.empty()) return ONNXIFI_STATUS_INVALID_SHAPE;
    described.push_back({constant->name, constant->dtype, {constant->extents.begin(), constant->extents.end()}});
    data.push_back(weights_.emplace_back(constant->bytes.begin(), constant->bytes.end()).data());
  }
  Descriptors descriptors(device_.library().is_fork(), described);
  for (size_t i = 0; i < data.size(); ++i) descriptors.set_buffer(i, data[i]);
  const std::string model = onnx_model.bytes(device_.versions(), OnnxModel::kNone);
  const std::unique_lock<std::mutex> lock = device_.library().guard();
  return functions_.init_graph(device_.backend(), nullptr, model.size(), model.data(), descriptors.count(),
                               descriptors.data(), &graph_, 0, nullptr);
}

// ---- runs ----------------------------------------------------------------------------------------------------------

PASSES_THE_FORKS_ARGUMENTS onnxEvent IslandProgram::start(const std::vector<const void*>& inputs,
                                                          const std::vector<void*>& outputs) const {
  onnxMemoryFenceV1 after = fence_of(nullptr);
  std::vector<const void*> wanted = inputs;
  wanted.insert(wanted.end(), outputs.begin(), outputs.end());
  // If a library has onnxSetIOAndRunGraph, its onnxSetGraphIO and onnxRunGraph may be stubs that only fail.
  if (set_io_and_run_ != nullptr || wanted != bound_ || bound_.empty()) {
    bound_.clear();
    Locations& next = locations_[1 - current_];  // until this call, the library may read the current set
    for (size_t i = 0; i < inputs.size(); ++i) next.inputs.set_buffer(i, inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) next.outputs.set_buffer(i, outputs[i]);
    current_ = 1 - current_;
    if (set_io_and_run_ != nullptr) {
      device_.check(set_io_and_run_(graph_, next.inputs.count(), next.inputs.data(), next.outputs.count(),
                                    next.outputs.data(), &after, nullptr),
                    "onnxSetIOAndRunGraph");
      return after.event;
    }
    device_.check(functions_.set_graph_io(graph_, next.inputs.count(), next.inputs.data(), next.outputs.count(),
                                          next.outputs.data()),
                  "onnxSetGraphIO");
    bound_ = std::move(wanted);
  }
  const Event event(*this);
  const onnxMemoryFenceV1 before = fence_of(event.get());
  device_.check(functions_.run_graph(graph_, &before, &after), "onnxRunGraph");
  if (after.event != nullptr) wait(after.event);  // the input event must outlive the run: the library may read it
  return nullptr;
}

void IslandProgram::wait(onnxEvent event) const {
  struct Release {
    const Functions& call;
    onnxEvent event;
    ~Release() { call.release_event(event); }
  } const release{functions_, event};
  if (const WaitEventFor wait_for = device_.library().wait_event_for(); wait_for != nullptr) {
    constexpr uint32_t kForever = 0;
    char text[512] = {};
    size_t size = sizeof text;
    onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
    onnxStatus status = ONNXIFI_STATUS_SUCCESS;
    device_.check(wait_for(event, kForever, &state, &status, text, &size), "onnxWaitEventFor");
    if (status == ONNXIFI_STATUS_SUCCESS) return;
    text[sizeof text - 1] = 0;
    device_.check(status, text[0] == 0 ? std::string("the run") : "the run (" + std::string(text) + ")");
  }
  device_.check(functions_.wait_event(event), "onnxWaitEvent");
}

void IslandProgram::launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                           const RunSync& order) const {
  const std::lock_guard runs(mutex_);
  host().check(order.run().cancel, order.run().deadline);
  const std::unique_lock<std::mutex> lock = device_.library().guard();
  try {
    if (const onnxEvent event = start(inputs, outputs)) wait(event);
  } catch (...) {
    bound_.clear();  // after a failure, the library may have dropped the addresses
    throw;
  }
}

}  // namespace onnxifi_backend
