// SPDX-License-Identifier: Apache-2.0
// A test library that forwards all calls to Backplane's own libonnxifi.so, but reports that it reads only the opset in
// the environment variable BACKPLANE_TEST_OPSET, in IR version 3 and, from opset 9 on, also 4. So the loader in that
// library reads, upgrades and runs what the backend writes in old forms.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "onnxifi/onnxifi.h"

namespace {

void* library() {
  static void* const kHandle = [] {
    void* const handle = dlopen(INNER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return handle;
  }();
  return kHandle;
}

template <class Function>
Function* inner(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library(), name));
}

int opset() {
  const char* const text = std::getenv("BACKPLANE_TEST_OPSET");
  return text == nullptr ? 8 : std::atoi(text);
}

}  // namespace

#define FORWARD(name) (*inner(&(name), #name))

onnxStatus onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {
  return FORWARD(onnxGetBackendIDs)(ids, count);
}
onnxStatus onnxReleaseBackendID(onnxBackendID id) {
  return FORWARD(onnxReleaseBackendID)(id);
}
onnxStatus onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo type, void* value, size_t* size) {
  std::string text;
  if (type == ONNXIFI_BACKEND_OPSET_VERSION) text = "ai.onnx:" + std::to_string(opset());
  if (type == ONNXIFI_BACKEND_ONNX_IR_VERSION) text = opset() < 9 ? "3" : "3 4";
  if (text.empty()) return FORWARD(onnxGetBackendInfo)(id, type, value, size);
  const bool fits = value != nullptr && *size >= text.size();
  *size = text.size();
  if (fits) std::memcpy(value, text.data(), text.size());
  return fits ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_FALLBACK;
}
onnxStatus onnxGetBackendCompatibility(onnxBackendID id, size_t size, const void* model) {
  return FORWARD(onnxGetBackendCompatibility)(id, size, model);
}
onnxStatus onnxInitBackend(onnxBackendID id, const uint64_t* properties, onnxBackend* backend) {
  return FORWARD(onnxInitBackend)(id, properties, backend);
}
onnxStatus onnxReleaseBackend(onnxBackend backend) {
  return FORWARD(onnxReleaseBackend)(backend);
}
onnxStatus onnxInitEvent(onnxBackend backend, onnxEvent* event) {
  return FORWARD(onnxInitEvent)(backend, event);
}
onnxStatus onnxSignalEvent(onnxEvent event) {
  return FORWARD(onnxSignalEvent)(event);
}
onnxStatus onnxGetEventState(onnxEvent event, onnxEventState* state) {
  return FORWARD(onnxGetEventState)(event, state);
}
onnxStatus onnxWaitEvent(onnxEvent event) {
  return FORWARD(onnxWaitEvent)(event);
}
onnxStatus onnxReleaseEvent(onnxEvent event) {
  return FORWARD(onnxReleaseEvent)(event);
}
onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t* properties, size_t size, const void* model,
                         uint32_t count, const onnxTensorDescriptorV1* weights, onnxGraph* graph) {
  return FORWARD(onnxInitGraph)(backend, properties, size, model, count, weights, graph);
}
onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputs, const onnxTensorDescriptorV1* in, uint32_t outputs,
                          const onnxTensorDescriptorV1* out) {
  return FORWARD(onnxSetGraphIO)(graph, inputs, in, outputs, out);
}
onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* before, onnxMemoryFenceV1* after) {
  return FORWARD(onnxRunGraph)(graph, before, after);
}
onnxStatus onnxReleaseGraph(onnxGraph graph) {
  return FORWARD(onnxReleaseGraph)(graph);
}
