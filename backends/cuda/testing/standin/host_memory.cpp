// SPDX-License-Identifier: Apache-2.0
// The stand-in for libcuda.so.1: pinned host memory, which kernels use in place, and the attributes of addresses.
#include <cstdlib>
#include <map>
#include <mutex>

#include "testing/standin/hooks.h"

#define EXPORT extern "C" STANDIN_EXPORT
namespace {

std::mutex& pinned_mutex = *new std::mutex;
std::map<uintptr_t, size_t>& pinned = *new std::map<uintptr_t, size_t>;  // sizes in bytes, by address

void set_pinned(const void* memory, size_t bytes) {
  const std::lock_guard lock(pinned_mutex);
  pinned[reinterpret_cast<uintptr_t>(memory)] = bytes;
}

void unset_pinned(const void* memory) {
  const std::lock_guard lock(pinned_mutex);
  pinned.erase(reinterpret_cast<uintptr_t>(memory));
}

}  // namespace

bool standin::is_pinned(const void* memory, size_t bytes) {
  const std::lock_guard lock(pinned_mutex);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto after = pinned.upper_bound(address);
  if (after == pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin < size && bytes <= size - (address - begin);
}

EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  *out = std::calloc(1, bytes);
  set_pinned(*out, bytes);
  standin::count("pinned", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void* memory) {
  if (!standin::has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  REFUSE_IF_UNSAFE();
  unset_pinned(memory);
  std::free(memory);
  standin::count("pinned", -1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned) {
  IN_CONTEXT();
  *out = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  IN_CONTEXT();
  REFUSE_IF_UNSAFE();
  set_pinned(memory, bytes);
  standin::count("registered", 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void* memory) {
  if (!standin::has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  REFUSE_IF_UNSAFE();
  unset_pinned(memory);
  standin::count("registered", -1);
  return CUDA_SUCCESS;
}

// The attributes of an address that is in no allocation are 0, as with CUDA.
EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* what, void** results, CUdeviceptr memory) {
  IN_CONTEXT();
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  const bool is_known = standin::find_memory(memory, begin, bytes) && memory - begin < bytes;
  for (unsigned i = 0; i < count; ++i) {
    switch (what[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(results[i]) = is_known ? CU_MEMORYTYPE_DEVICE : 0;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<bool*>(results[i]) = false;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(results[i]) = is_known ? standin::device_of(memory) : 0;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<CUdeviceptr*>(results[i]) = is_known ? begin : 0;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<size_t*>(results[i]) = is_known ? bytes : 0;
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}
