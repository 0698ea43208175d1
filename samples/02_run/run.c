/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a model and prints the beginning of each output: run MODEL.onnx. Inputs of float, double, int32 and int64 are
 * filled with -2, -1, 0, 1, …, those of other types with zeros; symbolic dimensions get the extent 1. Opens the loader
 * with dlopen and links no library of Backplane. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backplane/loader.h"

static const bp_loader_api_t* api;
static char text[1000];
static bp_error_t error = {.size = sizeof error, .text = text, .text_capacity = sizeof text};

/* Ends the program if a call failed. */
static void check(bp_status_t status) {
  if (status == BP_OK) return;
  fprintf(stderr, "run: %.*s [%s]\n", (int)(error.text_size < sizeof text ? error.text_size : sizeof text), text,
          api->status_name(status));
  exit(1);
}

static uint64_t element_bytes(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_INT32:
    case BP_DTYPE_UINT32:
      return 4;
    case BP_DTYPE_INT64:
    case BP_DTYPE_UINT64:
    case BP_DTYPE_DOUBLE:
      return 8;
    case BP_DTYPE_INT8:
    case BP_DTYPE_UINT8:
    case BP_DTYPE_BOOL:
      return 1;
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

static void set(void* data, bp_dtype_t dtype, uint64_t i) {
  const int64_t value = (int64_t)i - 2;
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      ((float*)data)[i] = (float)value;
      break;
    case BP_DTYPE_DOUBLE:
      ((double*)data)[i] = (double)value;
      break;
    case BP_DTYPE_INT64:
      ((int64_t*)data)[i] = value;
      break;
    case BP_DTYPE_INT32:
      ((int32_t*)data)[i] = (int32_t)value;
      break;
    default:
      break; /* other types stay zero */
  }
}

static void print(const void* data, bp_dtype_t dtype, uint64_t i) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      printf(" %g", ((const float*)data)[i]);
      break;
    case BP_DTYPE_DOUBLE:
      printf(" %g", ((const double*)data)[i]);
      break;
    case BP_DTYPE_INT64:
      printf(" %" PRId64, ((const int64_t*)data)[i]);
      break;
    case BP_DTYPE_INT32:
      printf(" %" PRId32, ((const int32_t*)data)[i]);
      break;
    case BP_DTYPE_BOOL:
      printf(" %d", ((const uint8_t*)data)[i]);
      break;
    default:
      printf(" ?");
      break;
  }
}

/* Allocates memory for input `i` of the graph, fills it and binds it. The caller owns the memory and must keep it
 * until the exec is destroyed. */
static void* bind_input(bp_exec_t* exec, const bp_graph_t* graph, uint32_t i) {
  const bp_value_t* value = bp_graph_value(graph, graph->inputs[i]);
  const bp_type_t* type = bp_graph_type(graph, value->type);
  const uint64_t width = element_bytes(type->dtype);
  if (type->kind != BP_KIND_TENSOR || type->rank < 0 || width == 0) {
    fprintf(stderr, "run: input '%.*s' has a type that this sample does not support\n", (int)value->name.size,
            value->name.data);
    exit(1);
  }
  int64_t extents[BP_MAX_RANK];
  uint64_t count = 1;
  for (int32_t d = 0; d < type->rank; ++d) {
    const int64_t extent = graph->dims[type->first_dim + (uint32_t)d].extent;
    extents[d] = extent < 0 ? 1 : extent;
    count *= (uint64_t)extents[d];
  }
  void* data = calloc(count + 1, width);
  if (data == NULL) exit(1);
  for (uint64_t k = 0; k < count; ++k) set(data, type->dtype, k);
  const bp_tensor_t tensor = {.size = sizeof tensor,
                              .dtype = type->dtype,
                              .rank = (uint32_t)type->rank,
                              .extents = extents,
                              .buffer = {.address = data, .bytes = count * width}};
  check(api->exec_bind(exec, i, &tensor, &error));
  return data;
}

static void print_output(bp_exec_t* exec, const bp_graph_t* graph, uint32_t i) {
  const bp_text_t name = bp_graph_value(graph, graph->outputs[i])->name;
  bp_tensor_t tensor = {.size = sizeof tensor};
  check(api->exec_output(exec, i, &tensor, &error));
  uint64_t count = 1;
  printf("%.*s [", (int)name.size, name.data);
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    printf("%s%" PRId64, d == 0 ? "" : ", ", tensor.extents[d]);
    count *= (uint64_t)tensor.extents[d];
  }
  printf("]:");
  const char* data = (const char*)tensor.buffer.address + tensor.buffer.offset;
  for (uint64_t k = 0; k < count && k < 10; ++k) print(data, tensor.dtype, k);
  printf(count > 10 ? " …\n" : "\n");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run MODEL.onnx\n");
    return 2;
  }
  void* library = dlopen("libbackplane.so.1", RTLD_NOW | RTLD_LOCAL);
  bp_get_api_t get_api = NULL;
  if (library != NULL) *(void**)&get_api = dlsym(library, BP_LOADER_SYMBOL);
  if (get_api == NULL || (api = get_api(BP_ABI_VERSION)) == NULL) {
    fprintf(stderr,
            "run: libbackplane.so.1 is missing or of another version; install Backplane or set LD_LIBRARY_PATH\n");
    return 1;
  }

  bp_env_t* env;
  bp_model_t* model;
  bp_session_t* session;
  bp_exec_t* exec;
  const bp_model_source_t source = {.size = sizeof source, .descriptor = -1, .path = {argv[1], strlen(argv[1])}};
  check(api->env_create(NULL, &env, &error));
  check(api->model_open(env, &source, &model, &error));
  check(api->session_create(env, model, NULL, &session, &error));
  check(api->exec_create(session, NULL, &exec, &error));

  const bp_graph_t* graph = api->model_graph(model);
  void** memory = calloc(graph->input_count + 1, sizeof *memory);
  if (memory == NULL) return 1;
  for (uint32_t i = 0; i < graph->input_count; ++i) memory[i] = bind_input(exec, graph, i);
  check(api->exec_run(exec, NULL, &error));
  for (uint32_t i = 0; i < graph->output_count; ++i) print_output(exec, graph, i);

  api->exec_destroy(exec);
  for (uint32_t i = 0; i < graph->input_count; ++i) free(memory[i]);
  free(memory);
  api->session_destroy(session);
  api->model_destroy(model);
  api->env_destroy(env);
  return 0;
}
