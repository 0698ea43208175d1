// SPDX-License-Identifier: Apache-2.0
#include "testing/cl_layer.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace backplane::opencl::testing {

ClLayer& cl_layer() {
  static ClLayer layer;
  return layer;
}

ClLayer::References ClLayer::references() const {
  return {contexts, queues, memories, programs, kernels, events};
}

void ClLayer::fail(std::string function, cl_int status, uint64_t good) {
  const std::lock_guard lock(mutex_);
  failing_ = std::move(function);
  status_ = status;
  good_ = good;
}

void ClLayer::prepend_to_sources(std::string with) {
  const std::lock_guard lock(mutex_);
  prepended_ = std::move(with);
}

void ClLayer::set_driver_version(std::string version) {
  const std::lock_guard lock(mutex_);
  driver_ = std::move(version);
}

void ClLayer::clear_failures() {
  const std::lock_guard lock(mutex_);
  failing_.clear();
  prepended_.clear();
  driver_.clear();
  buffer_limit = UINT64_MAX;
}

cl_int ClLayer::failure(const char* function) {
  const std::lock_guard lock(mutex_);
  if (failing_ != function) return CL_SUCCESS;
  if (good_ != 0) {
    --good_;
    return CL_SUCCESS;
  }
  ++refused;
  return status_;
}

std::string ClLayer::prepended() const {
  const std::lock_guard lock(mutex_);
  return prepended_;
}

uint64_t ClLayer::created(const std::string& kernel) const {
  const std::lock_guard lock(mutex_);
  const auto at = created_.find(kernel);
  return at == created_.end() ? 0 : at->second;
}

void ClLayer::report_created(const char* kernel) {
  const std::lock_guard lock(mutex_);
  ++created_[kernel];
}

std::string ClLayer::driver() const {
  const std::lock_guard lock(mutex_);
  return driver_;
}

namespace {

void* find(const char* function) {
  void* found = dlsym(RTLD_NEXT, function);
  if (found == nullptr) {
    std::fprintf(stderr, "the real %s: %s\n", function, dlerror());
    std::abort();
  }
  return found;
}

template <class Object>
Object made(Object object, std::atomic<int64_t>& count) {
  if (object != nullptr) ++count;
  return object;
}

void enqueued(cl_int status, const cl_event* event) {
  if (status != CL_SUCCESS) return;
  ++cl_layer().unflushed;
  if (event != nullptr) ++cl_layer().events;
}

template <class Object>
Object refused(cl_int status, cl_int* out) {
  if (out != nullptr) *out = status;
  return nullptr;
}

void copied(cl_int status, size_t bytes) {
  if (status != CL_SUCCESS) return;
  ++cl_layer().copies;
  cl_layer().copied_bytes += bytes;
}

}  // namespace
}  // namespace backplane::opencl::testing

using namespace backplane::opencl::testing;

// Defines `real`, the ICD loader's function of this name.
#define REAL(name) static const auto real = reinterpret_cast<decltype(&(name))>(find(#name))
#define FAIL_IF_ASKED(name) \
  if (const cl_int failure = cl_layer().failure(#name); failure != CL_SUCCESS) return failure
#define REFUSE_IF_ASKED(name, Object) \
  if (const cl_int failure = cl_layer().failure(#name); failure != CL_SUCCESS) return refused<Object>(failure, status)
// Defines functions that count an object's references. A call that fails changes no count.
#define COUNTED(Object, count, retain, release)   \
  cl_int retain(Object object) {                  \
    REAL(retain);                                 \
    const cl_int status = real(object);           \
    if (status == CL_SUCCESS) ++cl_layer().count; \
    return status;                                \
  }                                               \
  cl_int release(Object object) {                 \
    REAL(release);                                \
    const cl_int status = real(object);           \
    if (status == CL_SUCCESS) --cl_layer().count; \
    return status;                                \
  }

extern "C" {

COUNTED(cl_context, contexts, clRetainContext, clReleaseContext)
COUNTED(cl_command_queue, queues, clRetainCommandQueue, clReleaseCommandQueue)
COUNTED(cl_mem, memories, clRetainMemObject, clReleaseMemObject)
COUNTED(cl_program, programs, clRetainProgram, clReleaseProgram)
COUNTED(cl_kernel, kernels, clRetainKernel, clReleaseKernel)
COUNTED(cl_event, events, clRetainEvent, clReleaseEvent)

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void* value, size_t* out_size) {
  REAL(clGetDeviceInfo);
  if (const cl_int refusal = cl_layer().failure("clGetDeviceInfo"); refusal != CL_SUCCESS) return refusal;
  const std::string driver = what == CL_DRIVER_VERSION ? cl_layer().driver() : "";
  if (driver.empty()) return real(device, what, size, value, out_size);
  if (out_size != nullptr) *out_size = driver.size() + 1;
  if (value == nullptr) return CL_SUCCESS;
  if (size <= driver.size()) return CL_INVALID_VALUE;
  std::memcpy(value, driver.c_str(), driver.size() + 1);
  return CL_SUCCESS;
}

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* user,
                           cl_int* status) {
  REAL(clCreateContext);
  REFUSE_IF_ASKED(clCreateContext, cl_context);
  return made(real(properties, count, devices, notify, user, status), cl_layer().contexts);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int* status) {
  REAL(clCreateCommandQueue);
  REFUSE_IF_ASKED(clCreateCommandQueue, cl_command_queue);
  return made(real(context, device, properties, status), cl_layer().queues);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* status) {
  REAL(clCreateBuffer);
  REFUSE_IF_ASKED(clCreateBuffer, cl_mem);
  if (bytes > cl_layer().buffer_limit) return refused<cl_mem>(CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) ++cl_layer().imports;
  return made(real(context, flags, bytes, host, status), cl_layer().memories);
}

cl_mem clCreateSubBuffer(cl_mem whole, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                         cl_int* status) {
  REAL(clCreateSubBuffer);
  REFUSE_IF_ASKED(clCreateSubBuffer, cl_mem);
  return made(real(whole, flags, type, region, status), cl_layer().memories);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts, const size_t* sizes,
                                     cl_int* status) {
  REAL(clCreateProgramWithSource);
  REFUSE_IF_ASKED(clCreateProgramWithSource, cl_program);
  ++cl_layer().from_source;
  std::string all = cl_layer().prepended();
  for (cl_uint i = 0; i < count; ++i)
    all.append(texts[i], sizes != nullptr && sizes[i] != 0 ? sizes[i] : std::strlen(texts[i]));
  const char* text = all.data();
  const size_t size = all.size();
  return made(real(context, 1, &text, &size, status), cl_layer().programs);
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                     const size_t* sizes, const unsigned char** binaries, cl_int* loaded,
                                     cl_int* status) {
  REAL(clCreateProgramWithBinary);
  REFUSE_IF_ASKED(clCreateProgramWithBinary, cl_program);
  const cl_program program = real(context, count, devices, sizes, binaries, loaded, status);
  if (program != nullptr) ++cl_layer().from_binary;
  return made(program, cl_layer().programs);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                      void(CL_CALLBACK* notify)(cl_program, void*), void* user) {
  REAL(clBuildProgram);
  FAIL_IF_ASKED(clBuildProgram);
  return real(program, count, devices, options, notify, user);
}

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* status) {
  REAL(clCreateKernel);
  REFUSE_IF_ASKED(clCreateKernel, cl_kernel);
  cl_layer().report_created(name);
  return made(real(program, name, status), cl_layer().kernels);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint wait_count, const cl_event* waits,
                              cl_event* event) {
  REAL(clEnqueueNDRangeKernel);
  FAIL_IF_ASKED(clEnqueueNDRangeKernel);
  ++cl_layer().launches;
  const cl_int status = real(queue, kernel, dimensions, offset, global, local, wait_count, waits, event);
  enqueued(status, event);
  return status;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                            const void* from, cl_uint wait_count, const cl_event* waits, cl_event* event) {
  REAL(clEnqueueWriteBuffer);
  FAIL_IF_ASKED(clEnqueueWriteBuffer);
  cl_layer().waits += blocking != CL_FALSE;
  const cl_int status = real(queue, buffer, blocking, offset, bytes, from, wait_count, waits, event);
  copied(status, bytes);
  enqueued(status, event);
  return status;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                           void* to, cl_uint wait_count, const cl_event* waits, cl_event* event) {
  REAL(clEnqueueReadBuffer);
  FAIL_IF_ASKED(clEnqueueReadBuffer);
  cl_layer().waits += blocking != CL_FALSE;
  const cl_int status = real(queue, buffer, blocking, offset, bytes, to, wait_count, waits, event);
  copied(status, bytes);
  enqueued(status, event);
  return status;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                           size_t bytes, cl_uint wait_count, const cl_event* waits, cl_event* event) {
  REAL(clEnqueueCopyBuffer);
  FAIL_IF_ASKED(clEnqueueCopyBuffer);
  const cl_int status = real(queue, from, to, from_offset, to_offset, bytes, wait_count, waits, event);
  copied(status, bytes);
  enqueued(status, event);
  return status;
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                         size_t bytes, cl_uint wait_count, const cl_event* waits, cl_event* event, cl_int* status) {
  REAL(clEnqueueMapBuffer);
  REFUSE_IF_ASKED(clEnqueueMapBuffer, void*);
  cl_layer().waits += blocking != CL_FALSE;
  ++cl_layer().maps;
  cl_int result = CL_SUCCESS;
  void* mapped = real(queue, buffer, blocking, flags, offset, bytes, wait_count, waits, event, &result);
  enqueued(result, event);
  if (status != nullptr) *status = result;
  return mapped;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint wait_count,
                               const cl_event* waits, cl_event* event) {
  REAL(clEnqueueUnmapMemObject);
  ++cl_layer().maps;
  const cl_int status = real(queue, memory, mapped, wait_count, waits, event);
  enqueued(status, event);
  return status;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event* waits, cl_event* event) {
  REAL(clEnqueueMarkerWithWaitList);
  FAIL_IF_ASKED(clEnqueueMarkerWithWaitList);
  const cl_int status = real(queue, wait_count, waits, event);
  enqueued(status, event);
  return status;
}

cl_event clCreateUserEvent(cl_context context, cl_int* status) {
  REAL(clCreateUserEvent);
  REFUSE_IF_ASKED(clCreateUserEvent, cl_event);
  return made(real(context, status), cl_layer().events);
}

// While `fail("the end", status)` is in effect, callbacks report `status`.
cl_int clSetEventCallback(cl_event event, cl_int when, void(CL_CALLBACK* notify)(cl_event, cl_int, void*), void* user) {
  REAL(clSetEventCallback);
  FAIL_IF_ASKED(clSetEventCallback);
  struct Call {
    void(CL_CALLBACK* notify)(cl_event, cl_int, void*);
    void* user;
  };
  auto call = std::make_unique<Call>(Call{notify, user});
  const auto on_event = [](cl_event event, cl_int status, void* self) {
    const std::unique_ptr<Call> call(static_cast<Call*>(self));
    const cl_int failure = cl_layer().failure("the end");
    call->notify(event, failure != CL_SUCCESS ? failure : status, call->user);
  };
  ++cl_layer().callbacks;
  const cl_int status = real(event, when, on_event, call.get());
  if (status == CL_SUCCESS) static_cast<void>(call.release());
  return status;
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void* value, size_t* out_size) {
  REAL(clGetEventInfo);
  FAIL_IF_ASKED(clGetEventInfo);
  ++cl_layer().queries;
  return real(event, what, size, value, out_size);
}

cl_int clFlush(cl_command_queue queue) {
  REAL(clFlush);
  FAIL_IF_ASKED(clFlush);
  cl_layer().unflushed = 0;
  return real(queue);
}

cl_int clFinish(cl_command_queue queue) {
  REAL(clFinish);
  FAIL_IF_ASKED(clFinish);
  ++cl_layer().waits;
  cl_layer().unflushed = 0;
  return real(queue);
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  REAL(clWaitForEvents);
  ++cl_layer().waits;
  return real(count, events);
}

}  // extern "C"
