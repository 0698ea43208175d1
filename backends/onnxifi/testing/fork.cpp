// SPDX-License-Identifier: Apache-2.0
// A test library of the later fork of ONNXIFI: descriptors have 96 bytes, onnxInitGraph has two more arguments, and
// onnxSetIOAndRunGraph, the only way to run, has one more. The fork also has onnxWaitEventFor.
#include "vendor.h"

struct Descriptor {
  int32_t tag;
  const char* name;
  onnxEnum data_type, memory_type;
  uint32_t dimensions;
  const uint64_t* shape;
  uint32_t quantization_axis;
  uint64_t quantization_params;
  const float* scales;
  const int32_t* biases;
  uint8_t is_offline;
  onnxPointer address;
};
static_assert(sizeof(Descriptor) == 96);

namespace {

struct Fork : vendor::Traits {
  using Descriptor = ::Descriptor;
  static constexpr const char* kName = "Fork";
  static constexpr bool kWeightsAsDescriptors = true;
  static onnxPointer buffer(const Descriptor& descriptor) {
    if (descriptor.quantization_params != 0 || descriptor.is_offline != 0) vendor::misuse("a descriptor is not plain");
    return descriptor.address;
  }
  static uint64_t dtype(const Descriptor& descriptor) { return descriptor.data_type; }
};
using Library = vendor::Library<Fork>;

onnxStatus set_io_and_run(onnxGraph graph, uint32_t inputs, const Descriptor* in, uint32_t outputs,
                          const Descriptor* out, onnxMemoryFenceV1* after, void* trace) {
  if (trace != nullptr) vendor::misuse("a trace was passed");
  return Library::set_io_and_run(graph, inputs, in, outputs, out, after);
}

}  // namespace

VENDOR_COMMON(Fork)

// Has another name in C++, as the header declares onnxInitGraph with the arguments of ONNXIFI 1.0.
VENDOR_EXPORT onnxStatus fork_init_graph(onnxBackend, const uint64_t*, size_t, const void*, uint32_t, const Descriptor*,
                                         onnxGraph*, uint32_t, void*) __asm__("onnxInitGraph");
onnxStatus fork_init_graph(onnxBackend backend, const uint64_t*, size_t size, const void* model, uint32_t count,
                           const Descriptor* weights, onnxGraph* graph, uint32_t max_sequence_length, void* reader) {
  if (max_sequence_length != 0 || reader != nullptr) vendor::misuse("onnxInitGraph was called with fewer arguments");
  return Library::init_graph(backend, size, model, count, weights, graph);
}

VENDOR_EXPORT onnxStatus onnxSetGraphIO(onnxGraph, uint32_t, const onnxTensorDescriptorV1*, uint32_t,
                                        const onnxTensorDescriptorV1*) {
  return ONNXIFI_STATUS_INTERNAL_ERROR;
}
VENDOR_EXPORT onnxStatus onnxRunGraph(onnxGraph, const onnxMemoryFenceV1*, onnxMemoryFenceV1*) {
  return ONNXIFI_STATUS_INTERNAL_ERROR;
}
VENDOR_EXPORT onnxStatus onnxGetExtensionFunctionAddress(onnxBackendID, const char* name,
                                                         onnxExtensionFunctionPointer* function) {
  *function = nullptr;
  if (std::string_view(name) != "onnxSetIOAndRunGraphFunction") return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  *function = vendor::address(set_io_and_run);
  return ONNXIFI_STATUS_SUCCESS;
}
// NOLINTNEXTLINE(readability-identifier-naming): the name is the fork's.
VENDOR_EXPORT onnxStatus onnxWaitEventFor(onnxEvent event, uint32_t, onnxEventState* state, onnxStatus* status,
                                          char* text, size_t* size) {
  *status = Library::wait_event(event);
  *state = ONNXIFI_EVENT_STATE_SIGNALLED;
  *size = static_cast<size_t>(std::snprintf(text, *size, "%s", *status == 0 ? "" : "the chip is warm"));
  return ONNXIFI_STATUS_SUCCESS;
}
