/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a model in a program that has its own OpenCL context, queue and buffers: streams MODEL.onnx [FRAMES]. The model
 * runs between two kernels of the program, which waits once per frame. The model computes y from a and b, all
 * float[2, 3] (make_model writes one).
 *
 *   frame number -> own kernel -> a, b (cl_mem) -> the model, on the same queue -> y (cl_mem) -> own kernel -> result
 *
 * The device is opened in the program's context, the queue becomes a stream, and the buffers are bound without copies.
 * Only reading the result at the end of a frame waits. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backplane/loader.h"

#define COUNT 6 /* elements of a, b and y */

static const bp_loader_api_t* api;
static char text[1000];
static bp_error_t error = {.size = sizeof error, .text = text, .text_capacity = sizeof text};

static void check(bp_status_t status) {
  if (status == BP_OK) return;
  fprintf(stderr, "streams: %.*s [%s]\n", (int)(error.text_size < sizeof text ? error.text_size : sizeof text), text,
          api->status_name(status));
  exit(1);
}

static void check_cl(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "streams: %s: OpenCL error %d\n", what, (int)status);
  exit(1);
}

/* The kernel `before` produces the inputs of a frame, `after` uses the model's output. One work-item per element. */
static const char* const kSource =
    "kernel void before(global float* a, global float* b, int frame) {"
    "  const int i = get_global_id(0); a[i] = i + frame; b[i] = -2.0f * frame; }"
    "kernel void after(global const float* y, global float* result) {"
    "  const int i = get_global_id(0); result[i] = 10.0f * y[i]; }";

typedef struct {
  cl_context context;
  cl_command_queue queue;
  cl_kernel before, after;
  cl_mem a, b, y, result;
} Own; /* OpenCL objects that such a program has before it uses Backplane */

static cl_mem new_buffer(const Own* own) {
  cl_int status = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(own->context, CL_MEM_READ_WRITE, COUNT * sizeof(float), NULL, &status);
  check_cl(status, "clCreateBuffer");
  return buffer;
}

static void make_own(Own* own) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int status = CL_SUCCESS;
  check_cl(clGetPlatformIDs(1, &platform, NULL), "no OpenCL platform");
  check_cl(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no OpenCL device");
  own->context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check_cl(status, "clCreateContext");
  own->queue = clCreateCommandQueue(own->context, device, 0, &status);
  check_cl(status, "clCreateCommandQueue");
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(own->context, 1, &source, NULL, &status);
  check_cl(status, "clCreateProgramWithSource");
  check_cl(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  own->before = clCreateKernel(program, "before", &status);
  check_cl(status, "clCreateKernel");
  own->after = clCreateKernel(program, "after", &status);
  check_cl(status, "clCreateKernel");
  clReleaseProgram(program);
  own->a = new_buffer(own), own->b = new_buffer(own), own->y = new_buffer(own), own->result = new_buffer(own);
  check_cl(clSetKernelArg(own->before, 0, sizeof own->a, &own->a), "clSetKernelArg");
  check_cl(clSetKernelArg(own->before, 1, sizeof own->b, &own->b), "clSetKernelArg");
  check_cl(clSetKernelArg(own->after, 0, sizeof own->y, &own->y), "clSetKernelArg");
  check_cl(clSetKernelArg(own->after, 1, sizeof own->result, &own->result), "clSetKernelArg");
}

/* Binds the program's own cl_mem to a slot, without copying it. */
static bp_buffer_t bind(bp_env_t* env, uint64_t device, uint32_t space, bp_exec_t* exec, uint32_t slot, cl_mem memory) {
  const int64_t extents[] = {2, 3};
  const bp_external_t external = {.size = sizeof external,
                                  .kind = BP_EXTERNAL_CL_MEM,
                                  .handle = (uint64_t)(uintptr_t)memory,
                                  .bytes = COUNT * sizeof(float)};
  const bp_import_t import = {.size = sizeof import, .space = space, .external = &external};
  bp_tensor_t tensor = {
      .size = sizeof tensor, .dtype = BP_DTYPE_FLOAT, .rank = 2, .layout = BP_LAYOUT_DENSE, .extents = extents};
  check(api->memory_import(env, device, &import, &tensor.buffer, &error));
  check(api->exec_bind(exec, slot, &tensor, &error));
  return tensor.buffer;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: streams MODEL.onnx [FRAMES]\n");
    return 2;
  }
  const int frames = argc > 2 ? atoi(argv[2]) : 3;
  void* library = dlopen("libbackplane.so.1", RTLD_NOW);
  bp_get_api_t get_api = NULL;
  if (library != NULL) *(void**)&get_api = dlsym(library, BP_LOADER_SYMBOL);
  if (get_api == NULL || (api = get_api(BP_ABI_VERSION)) == NULL) {
    fprintf(
        stderr,
        "streams: libbackplane.so.1 is missing or has another version; install Backplane or set LD_LIBRARY_PATH. %s\n",
        library == NULL ? dlerror() : "");
    return 1;
  }
  Own own;
  make_own(&own);

  /* Opens the OpenCL device in the program's own context. This sample uses the first OpenCL device. */
  bp_env_t* env = NULL;
  check(api->env_create(NULL, &env, &error));
  bp_device_info_t info = {.size = sizeof info};
  bp_text_t name = {0};
  for (uint32_t i = 1; i <= api->env_device_count(env); ++i) {
    check(api->env_device(env, i, &info, &name, &error));
    if (name.size == 6 && memcmp(name.data, "opencl", 6) == 0) break;
    name.size = 0;
  }
  if (name.size == 0) {
    fprintf(stderr, "streams: the OpenCL backend finds no device\n");
    return 1;
  }
  const uint64_t device = info.id;
  const bp_native_t context = {
      .size = sizeof context, .kind = BP_NATIVE_CL_CONTEXT, .handle = (uint64_t)(uintptr_t)own.context};
  const bp_device_open_t how = {.size = sizeof how, .native = &context};
  check(api->env_open_device(env, device, &how, &error));

  /* Compiles the model for this device only. */
  const bp_model_source_t source = {.size = sizeof source, .descriptor = -1, .path = {argv[1], strlen(argv[1])}};
  bp_model_t* model = NULL;
  check(api->model_open(env, &source, &model, &error));
  const bp_session_desc_t desc = {
      .size = sizeof desc, .fallback = BP_FALLBACK_FORBID, .device_count = 1, .devices = &name};
  bp_session_t* session = NULL;
  check(api->session_create(env, model, &desc, &session, &error));
  bp_exec_t* exec = NULL;
  check(api->exec_create(session, NULL, &exec, &error));
  const uint32_t space = info.space_count - 1; /* of the OpenCL backend's spaces, the last imports cl_mem */
  const bp_buffer_t bound[] = {bind(env, device, space, exec, 0, own.a), bind(env, device, space, exec, 1, own.b),
                               bind(env, device, space, exec, BP_SLOT_OUTPUT, own.y)};

  /* Makes a stream from the program's queue. */
  const bp_native_t queue = {
      .size = sizeof queue, .kind = BP_NATIVE_CL_QUEUE, .handle = (uint64_t)(uintptr_t)own.queue};
  const bp_stream_create_t stream_of = {.size = sizeof stream_of, .native = &queue};
  bp_stream_t* stream = NULL;
  check(api->stream_create(env, device, &stream_of, &stream, &error));

  const bp_run_t run = {.size = sizeof run, .stream = stream};
  const size_t count = COUNT;
  for (int frame = 0; frame < frames; ++frame) {
    float result[COUNT];
    check_cl(clSetKernelArg(own.before, 2, sizeof frame, &frame), "clSetKernelArg");
    check_cl(clEnqueueNDRangeKernel(own.queue, own.before, 1, NULL, &count, NULL, 0, NULL, NULL), "before");
    check(api->exec_run(exec, &run, &error)); /* only enqueues the run */
    check_cl(clEnqueueNDRangeKernel(own.queue, own.after, 1, NULL, &count, NULL, 0, NULL, NULL), "after");
    check_cl(clEnqueueReadBuffer(own.queue, own.result, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL), "result");
    printf("frame %d:", frame);
    for (int i = 0; i < COUNT; ++i) printf(" %g", result[i]);
    printf("\n");
  }
  check(api->stream_wait(stream, BP_FOREVER, &error)); /* also reports failures of the runs in the stream */

  api->exec_destroy(exec);
  api->stream_destroy(stream);
  for (size_t i = 0; i < sizeof bound / sizeof bound[0]; ++i) {
    const bp_release_t release = {.size = sizeof release, .buffer = &bound[i]};
    api->memory_release(env, &release);
  }
  api->session_destroy(session);
  api->model_destroy(model);
  api->env_destroy(env);
  clReleaseMemObject(own.a), clReleaseMemObject(own.b), clReleaseMemObject(own.y), clReleaseMemObject(own.result);
  clReleaseKernel(own.before), clReleaseKernel(own.after);
  clReleaseCommandQueue(own.queue), clReleaseContext(own.context);
  return 0;
}
