/* SPDX-License-Identifier: Apache-2.0
 *
 * A typical program for ONNXIFI that uses nothing of Backplane directly. It opens libonnxifi.so, prints every backend,
 * and runs y = Relu(Add(a, b)) on float[2,3] on the first backend that is compatible with the model.
 *
 *   onnxifi MODEL.onnx
 */
#include "onnxifi/onnxifi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of the library that this program uses. */
static struct {
  onnxStatus (*get_backend_ids)(onnxBackendID*, size_t*);
  onnxStatus (*release_backend_id)(onnxBackendID);
  onnxStatus (*get_backend_info)(onnxBackendID, onnxBackendInfo, void*, size_t*);
  onnxStatus (*get_backend_compatibility)(onnxBackendID, size_t, const void*);
  onnxStatus (*init_backend)(onnxBackendID, const uint64_t*, onnxBackend*);
  onnxStatus (*release_backend)(onnxBackend);
  onnxStatus (*init_event)(onnxBackend, onnxEvent*);
  onnxStatus (*signal_event)(onnxEvent);
  onnxStatus (*wait_event)(onnxEvent);
  onnxStatus (*release_event)(onnxEvent);
  onnxStatus (*init_graph)(onnxBackend, const uint64_t*, size_t, const void*, uint32_t, const onnxTensorDescriptorV1*,
                           onnxGraph*);
  onnxStatus (*set_graph_io)(onnxGraph, uint32_t, const onnxTensorDescriptorV1*, uint32_t,
                             const onnxTensorDescriptorV1*);
  onnxStatus (*run_graph)(onnxGraph, const onnxMemoryFenceV1*, onnxMemoryFenceV1*);
  onnxStatus (*release_graph)(onnxGraph);
} onnxifi;

static void load(void* library, const char* name, void* slot) {
  void* const function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "libonnxifi.so has no function %s\n", name);
    exit(1);
  }
  memcpy(slot, &function, sizeof function);
}

static void check(onnxStatus status, const char* what) {
  if (status == ONNXIFI_STATUS_SUCCESS) return;
  fprintf(stderr, "%s: status 0x%04x\n", what, (unsigned)status);
  exit(1);
}

static void* read_file(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    perror(path);
    exit(1);
  }
  const long size = ftell(file);
  void* const data = malloc(size > 0 ? (size_t)size : 1);
  rewind(file);
  if (size <= 0 || data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  *bytes = (size_t)size;
  return data;
}

static const uint64_t shape[] = {2, 3};

static onnxTensorDescriptorV1 tensor(const char* name, const float* data) {
  onnxTensorDescriptorV1 d = {0};
  d.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  d.name = name;
  d.dataType = ONNXIFI_DATATYPE_FLOAT32;
  d.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  d.dimensions = 2;
  d.shape = shape;
  d.buffer = (onnxPointer)(uintptr_t)data;
  return d;
}

static void run(onnxBackendID id, size_t bytes, const void* model) {
  static const float a[] = {-3, -2, -1, 0, 1, 2}, b[] = {1, 1, 1, 1, 1, 1};
  float y[6] = {0};
  const onnxTensorDescriptorV1 inputs[] = {tensor("a", a), tensor("b", b)}, output = tensor("y", y);
  onnxBackend backend;
  onnxGraph graph;
  onnxMemoryFenceV1 before = {0}, after = {0};
  before.tag = after.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  before.type = after.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  check(onnxifi.init_backend(id, NULL, &backend), "onnxInitBackend");
  check(onnxifi.init_graph(backend, NULL, bytes, model, 0, NULL, &graph), "onnxInitGraph");
  check(onnxifi.set_graph_io(graph, 2, inputs, 1, &output), "onnxSetGraphIO");
  check(onnxifi.init_event(backend, &before.event), "onnxInitEvent");
  check(onnxifi.run_graph(graph, &before, &after), "onnxRunGraph");
  check(onnxifi.signal_event(before.event), "onnxSignalEvent"); /* the inputs are ready, so the run begins */
  check(onnxifi.wait_event(after.event), "onnxWaitEvent");
  for (int i = 0; i < 6; ++i) printf("%g%c", y[i], i == 5 ? '\n' : ' ');
  onnxifi.release_event(after.event);
  onnxifi.release_event(before.event);
  onnxifi.release_graph(graph);
  onnxifi.release_backend(backend);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]), 2;
  void* const library = dlopen("libonnxifi.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  load(library, "onnxGetBackendIDs", &onnxifi.get_backend_ids);
  load(library, "onnxReleaseBackendID", &onnxifi.release_backend_id);
  load(library, "onnxGetBackendInfo", &onnxifi.get_backend_info);
  load(library, "onnxGetBackendCompatibility", &onnxifi.get_backend_compatibility);
  load(library, "onnxInitBackend", &onnxifi.init_backend);
  load(library, "onnxReleaseBackend", &onnxifi.release_backend);
  load(library, "onnxInitEvent", &onnxifi.init_event);
  load(library, "onnxSignalEvent", &onnxifi.signal_event);
  load(library, "onnxWaitEvent", &onnxifi.wait_event);
  load(library, "onnxReleaseEvent", &onnxifi.release_event);
  load(library, "onnxInitGraph", &onnxifi.init_graph);
  load(library, "onnxSetGraphIO", &onnxifi.set_graph_io);
  load(library, "onnxRunGraph", &onnxifi.run_graph);
  load(library, "onnxReleaseGraph", &onnxifi.release_graph);

  size_t bytes = 0, count = 0;
  void* const model = read_file(argv[1], &bytes);
  if (onnxifi.get_backend_ids(NULL, &count) != ONNXIFI_STATUS_FALLBACK || count == 0)
    return fprintf(stderr, "there is no backend\n"), 1;
  onnxBackendID* const ids = calloc(count, sizeof *ids);
  if (ids == NULL) return 1;
  check(onnxifi.get_backend_ids(ids, &count), "onnxGetBackendIDs");
  int found = 0;
  for (size_t i = 0; i < count; ++i) {
    char name[256];
    size_t size = sizeof name - 1;
    check(onnxifi.get_backend_info(ids[i], ONNXIFI_BACKEND_NAME, name, &size), "onnxGetBackendInfo");
    name[size] = '\0';
    const onnxStatus status = onnxifi.get_backend_compatibility(ids[i], bytes, model);
    printf("%s: %s\n", name, status == ONNXIFI_STATUS_SUCCESS ? "runs the model" : "does not run the model");
    if (status == ONNXIFI_STATUS_SUCCESS && !found) {
      found = 1;
      run(ids[i], bytes, model);
    }
    onnxifi.release_backend_id(ids[i]);
  }
  free(ids);
  free(model);
  return found ? 0 : 1;
}
