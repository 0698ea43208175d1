// SPDX-License-Identifier: Apache-2.0
// Handles that retain and release OpenCL objects, and the conversion of OpenCL's status codes to errors of the SDK.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/sdk/fence.hpp"

namespace backplane::opencl {

// Throws sdk::Error when `status` is not CL_SUCCESS. `what` names the object or action, such as "buffer of 12 bytes".
void check(cl_int status, std::string_view what);
sdk::Error error_of(cl_int status, std::string_view what);
// Returns a name such as "CL_OUT_OF_RESOURCES", or "OpenCL error -9999" for an unknown status.
std::string error_name(cl_int status);

// Owns one reference to an OpenCL object.
template <class T, cl_int (*kRetain)(T), cl_int (*kRelease)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T owned) : raw_(owned) {}
  Handle(const Handle& other) : raw_(other.raw_) {
    if (raw_ != nullptr) kRetain(raw_);
  }
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_ != nullptr) kRelease(raw_);
  }

  T get() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  T raw_ = nullptr;
};

using ClContext = Handle<cl_context, clRetainContext, clReleaseContext>;
using ClQueue = Handle<cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue>;
using ClMemory = Handle<cl_mem, clRetainMemObject, clReleaseMemObject>;
using ClProgram = Handle<cl_program, clRetainProgram, clReleaseProgram>;
using ClKernel = Handle<cl_kernel, clRetainKernel, clReleaseKernel>;
using ClEvent = Handle<cl_event, clRetainEvent, clReleaseEvent>;

// A property that a device reports; zero if it does not support the query.
template <class T>
T device_number(cl_device_id device, cl_device_info what) {
  T value{};
  return clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}
std::string device_text(cl_device_id device, cl_device_info what);
std::string platform_text(cl_platform_id platform, cl_platform_info what);

}  // namespace backplane::opencl
