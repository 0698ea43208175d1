// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/devices.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "testing/standin/hooks.h"

#define EXPORT extern "C" STANDIN_EXPORT
#define CALLED() \
  if (const int refused = standin::called(__func__); refused != CUDA_SUCCESS) return static_cast<CUresult>(refused)

namespace {

constexpr int kMostDevices = 4;
std::array<CUctx_st, kMostDevices> contexts{{{0}, {1}, {2}, {3}}};
thread_local std::vector<CUcontext> current;

int device_count() {
  const char* const count = std::getenv("STANDIN_DEVICES");
  return count == nullptr ? 1 : std::min(std::atoi(count), kMostDevices);
}

}  // namespace

bool standin::has_context() {
  return !current.empty();
}

CUcontext standin::current_context() {
  return current.empty() ? nullptr : current.back();
}

EXPORT CUresult cuInit(unsigned) {
  CALLED();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  CALLED();
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int* number) {
  CALLED();
  *number = device_count();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int index) {
  CALLED();
  if (index < 0 || index >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  CALLED();
  std::strncpy(name, "Stand-in for a GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  CALLED();
  const char* const arch = std::getenv("STANDIN_ARCH");
  const int capability = arch == nullptr ? 90 : std::atoi(arch);
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 16;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1000000;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  CALLED();
  std::snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 0x0a + static_cast<unsigned>(device));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  CALLED();
  *bytes = size_t{2} << 30;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  CALLED();
  if (device < 0 || device >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  standin::count("contexts", 1);
  *out = &contexts[static_cast<size_t>(device)];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  standin::count("contexts", -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext own) {
  CALLED();
  current.push_back(own);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext* own) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *own = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  CALLED();
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current.back()->device;
  return CUDA_SUCCESS;
}
