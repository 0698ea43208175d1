// SPDX-License-Identifier: Apache-2.0
// Test code: functions of the stand-in for libcuda.so.1 that the stand-ins for NVIDIA's other libraries call.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>

#define STANDIN_EXPORT __attribute__((visibility("default")))

namespace standin {

// Counts a call, and returns the error that a test injects into it, or 0.
STANDIN_EXPORT int called(const char* function);
// Counts objects of a kind: `change` is 1 or -1.
STANDIN_EXPORT void count(const char* kind, int64_t change);
STANDIN_EXPORT bool has_context();  // whether this thread has a current context
// Finds the allocation that contains the address, or ends at it. False if there is none.
STANDIN_EXPORT bool find_memory(CUdeviceptr address, CUdeviceptr& begin, size_t& bytes);
// Whether the bytes belong to one allocation that has not been freed.
inline bool is_memory(CUdeviceptr address, uint64_t bytes) {
  CUdeviceptr begin = 0;
  size_t whole = 0;
  return find_memory(address, begin, whole) && bytes <= whole - (address - begin);
}
// Runs `work` when everything that is in the stream now has ended, or adds it to the stream's capture. Returns false if
// that capture is invalid.
STANDIN_EXPORT bool enqueue(CUstream stream, std::function<void()> work);

// ---- within libcuda.so.1 --------------------------------------------------------------------------------------------

// The device of the memory that contains the address or ends at it, or -1 if there is none.
CUdevice device_of(CUdeviceptr address);
// Whether the bytes are pinned host memory.
bool is_pinned(const void* memory, size_t bytes);
// Refuses a call that could disturb a capture in progress, and invalidates the captures that it could disturb.
CUresult unsafe_call();

// For calls that CUDA refuses without a current context.
#define IN_CONTEXT()                                                                                                 \
  if (const int refused = standin::called(__func__); refused != CUDA_SUCCESS) return static_cast<CUresult>(refused); \
  if (!standin::has_context()) return CUDA_ERROR_INVALID_CONTEXT
// For calls that CUDA's documentation calls potentially unsafe during a capture, such as to allocate, free or wait.
#define REFUSE_IF_UNSAFE() \
  if (const CUresult unsafe = standin::unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe

}  // namespace standin
