// SPDX-License-Identifier: Apache-2.0
// A faulty test library; the macro FAULT selects the fault.
#include <unistd.h>

#include "vendor.h"

#define STATUS 1    // onnxGetBackendIDs returns a status that ONNXIFI does not have
#define MANY 2      // reports 2^64 - 1 backends
#define TWICE 3     // reports one id twice
#define SIZES 4     // reports wrong sizes, and unterminated strings
#define NO_GRAPH 5  // onnxInitGraph succeeds and returns no graph
#define REFUSES 6   // onnxInitGraph refuses what onnxGetBackendCompatibility accepts
#define FAILS 7     // every run fails
#define NO_BACKEND 8
#define ABORTS 9    // onnxGetBackendIDs aborts
#define HANGS 10    // onnxGetBackendIDs never returns
#define EXITS 11    // onnxGetBackendInfo ends the process
#define FORGETS 12  // the first run fails in onnxRunGraph, the third in onnxWaitEvent, and both drop the buffers

struct Lies : vendor::Traits {
  static constexpr const char* kName = "Lies";
};
using Library = vendor::Library<Lies>;
#define onnxGetBackendIDs honest_ids
#define onnxGetBackendInfo honest_info
#define onnxInitBackend honest_init
#define onnxWaitEvent honest_wait
VENDOR_COMMON(Lies)
#undef onnxGetBackendIDs
#undef onnxGetBackendInfo
#undef onnxInitBackend
#undef onnxWaitEvent
#define onnxRunGraph honest_run
VENDOR_RUNS(Lies)
#undef onnxRunGraph

VENDOR_EXPORT onnxStatus onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {
  const onnxStatus status = Library::get_ids(ids, count);
  switch (FAULT) {
    case STATUS:
      return 77;
    case MANY:
      *count = SIZE_MAX;
      return status;
    case TWICE:
      *count = 2;
      ids[1] = ids[0];
      return status;
    case ABORTS:
      std::abort();
    case HANGS:
      for (;;) pause();
    default:
      return status;
  }
}
VENDOR_EXPORT onnxStatus onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo type, void* value, size_t* size) {
  if (FAULT == EXITS) _exit(0);
  if (FAULT != SIZES) return Library::info(id, type, value, size);
  if (type == ONNXIFI_BACKEND_NAME) {  // fills the buffer with bytes that are not text, without a final zero
    std::memset(value, '\x1b', *size);
    std::memcpy(value, "Lies ", 5);
    return ONNXIFI_STATUS_SUCCESS;
  }
  if (type == ONNXIFI_BACKEND_OPSET_VERSION) {
    constexpr char kText[] = "ai.onnx:8 : ai.onnx: ai.onnx:-3 ai.onnx:99999999999999999999 x:1:2 ,;";
    std::memcpy(value, kText, sizeof kText);
    *size = sizeof kText;
    return ONNXIFI_STATUS_SUCCESS;
  }
  std::memset(value, 'x', *size + 100);  // writes past the buffer's end
  *size += 100;
  return ONNXIFI_STATUS_SUCCESS;
}
VENDOR_EXPORT onnxStatus onnxInitBackend(onnxBackendID id, const uint64_t*, onnxBackend* backend) {
  const onnxStatus status = Library::init_backend(id, backend);
  if (FAULT == NO_BACKEND) *backend = nullptr;
  return status;
}
VENDOR_EXPORT onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t*, size_t size, const void* model,
                                       uint32_t count, const onnxTensorDescriptorV1* weights, onnxGraph* graph) {
  *graph = nullptr;
  if (FAULT == NO_GRAPH) return ONNXIFI_STATUS_SUCCESS;
  if (FAULT == REFUSES) return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
  return Library::init_graph(backend, size, model, count, weights, graph);
}
namespace {
int runs = 0;
}  // namespace
VENDOR_EXPORT onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* before, onnxMemoryFenceV1* after) {
  const bool is_first = ++runs == 1;
  const onnxStatus status =
      FAULT == FORGETS && is_first ? ONNXIFI_STATUS_INTERNAL_ERROR : Library::run(graph, before, after);
  if (FAULT == FORGETS && runs != 2) Library::forget(graph);
  return status;
}
VENDOR_EXPORT onnxStatus onnxWaitEvent(onnxEvent event) {
  const onnxStatus status = Library::wait_event(event);
  if (FAULT == FORGETS && runs == 3) return ONNXIFI_STATUS_INTERNAL_ERROR;
  return FAULT == FAILS ? ONNXIFI_STATUS_NO_DEVICE_RESOURCES : status;
}
