// SPDX-License-Identifier: Apache-2.0
#include "driver/cl.h"

namespace backplane::opencl {
namespace {

struct Code {
  cl_int status;
  std::string_view name;
};
#define CODE(name) \
  { name, #name }
constexpr Code kCodes[] = {
    CODE(CL_DEVICE_NOT_FOUND),
    CODE(CL_DEVICE_NOT_AVAILABLE),
    CODE(CL_COMPILER_NOT_AVAILABLE),
    CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    CODE(CL_OUT_OF_RESOURCES),
    CODE(CL_OUT_OF_HOST_MEMORY),
    CODE(CL_BUILD_PROGRAM_FAILURE),
    CODE(CL_MAP_FAILURE),
    CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    CODE(CL_INVALID_VALUE),
    CODE(CL_INVALID_DEVICE),
    CODE(CL_INVALID_CONTEXT),
    CODE(CL_INVALID_COMMAND_QUEUE),
    CODE(CL_INVALID_HOST_PTR),
    CODE(CL_INVALID_MEM_OBJECT),
    CODE(CL_INVALID_BINARY),
    CODE(CL_INVALID_BUILD_OPTIONS),
    CODE(CL_INVALID_PROGRAM),
    CODE(CL_INVALID_PROGRAM_EXECUTABLE),
    CODE(CL_INVALID_KERNEL_NAME),
    CODE(CL_INVALID_KERNEL),
    CODE(CL_INVALID_ARG_INDEX),
    CODE(CL_INVALID_ARG_VALUE),
    CODE(CL_INVALID_ARG_SIZE),
    CODE(CL_INVALID_KERNEL_ARGS),
    CODE(CL_INVALID_WORK_DIMENSION),
    CODE(CL_INVALID_WORK_GROUP_SIZE),
    CODE(CL_INVALID_WORK_ITEM_SIZE),
    CODE(CL_INVALID_EVENT),
    CODE(CL_INVALID_OPERATION),
    CODE(CL_INVALID_BUFFER_SIZE),
    CODE(CL_INVALID_GLOBAL_WORK_SIZE),
};
#undef CODE

bool out_of_memory(cl_int status) {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY;
}

}  // namespace

std::string error_name(cl_int status) {
  for (const Code& code : kCodes) {
    if (code.status == status) return std::string(code.name);
  }
  return "OpenCL error " + std::to_string(status);
}

sdk::Error error_of(cl_int status, std::string_view what) {
  const std::string text = std::string(what) + ": " + error_name(status);
  if (status == CL_DEVICE_NOT_AVAILABLE) return sdk::Error::device_lost(text, status);
  return sdk::Error(out_of_memory(status) ? BP_RESOURCE_EXHAUSTED : BP_INTERNAL, text, BP_NO_NODE, status);
}

void check(cl_int status, std::string_view what) {
  if (status != CL_SUCCESS) throw sdk::Error(error_of(status, what));
}

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.substr(0, text.find('\0'));
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (clGetPlatformInfo(platform, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.substr(0, text.find('\0'));
}

}  // namespace backplane::opencl
