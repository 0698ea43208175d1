// SPDX-License-Identifier: Apache-2.0
#include "driver/cuda.h"

#include <dlfcn.h>

namespace backplane::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Functions open_driver() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw sdk::Error(BP_UNSUPPORTED, std::string("driver not found: ") + dlerror() + "; install NVIDIA's driver");
  const auto find = [library](const std::string& name) {
    void* found = dlsym(library, name.c_str());
    // Drivers before CUDA 12.8 have only the older function, which returns the same time.
    if (found == nullptr && name == "cuEventElapsedTime_v2") found = dlsym(library, "cuEventElapsedTime");
    if (found == nullptr)
      throw sdk::Error(BP_UNSUPPORTED, std::string(kLibrary) + " has no function " + name + "; install a newer driver");
    return found;
  };
  Functions all;
  // In cuda.h many of these names are macros for versioned symbols: cuMemAlloc is cuMemAlloc_v2. They are expanded
  // before BACKPLANE_TEXT turns them into strings.
#define BACKPLANE_TEXT(name) #name
#define BACKPLANE_CUDA_FIND(name) all.name = reinterpret_cast<decltype(all.name)>(find(BACKPLANE_TEXT(name)))
  BACKPLANE_CUDA_FUNCTIONS(BACKPLANE_CUDA_FIND)
#undef BACKPLANE_CUDA_FIND
#undef BACKPLANE_TEXT
  return all;
}

// True for errors that leave the context unusable.
bool loses_device(CUresult status) {
  switch (status) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return true;
    default:
      return false;
  }
}

}  // namespace

const Functions& cuda() {
  static const Functions kFunctions = open_driver();
  return kFunctions;
}

std::string error_name(CUresult status) {
  const char* name = nullptr;
  if (cuda().cuGetErrorName(status, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "CUDA error " + std::to_string(status);
}

namespace {

// True for errors of calls that are not allowed during a capture.
bool is_capture_error(CUresult status) {
  return status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace

sdk::Error error_of(CUresult status, std::string_view what) {
  const std::string text = std::string(what) + ": " + error_name(status);
  if (loses_device(status)) return sdk::Error::device_lost(text, status);
  return sdk::Error(status == CUDA_ERROR_OUT_OF_MEMORY ? BP_RESOURCE_EXHAUSTED
                    : is_capture_error(status)         ? BP_BAD_STATE
                                                       : BP_INTERNAL,
                    text, BP_NO_NODE, status);
}

void check(CUresult status, std::string_view what) {
  if (status != CUDA_SUCCESS) throw sdk::Error(error_of(status, what));
}

Context::Context(CUdevice device, CUcontext framework)
    : device_(device), context_(framework), primary_(framework == nullptr) {
  if (primary_) check(cuda().cuDevicePrimaryCtxRetain(&context_, device), "primary context");
}

Context::~Context() {
  if (primary_) cuda().cuDevicePrimaryCtxRelease(device_);
}

Current::Current(const Context& context) {
  check(cuda().cuCtxPushCurrent(context.get()), "making a context current");
}

Current::~Current() {
  CUcontext popped = nullptr;
  cuda().cuCtxPopCurrent(&popped);
}

}  // namespace backplane::cuda
