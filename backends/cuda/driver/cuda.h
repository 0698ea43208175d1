// SPDX-License-Identifier: Apache-2.0
// CUDA's driver API, loaded at run time so that the plugin also loads on machines without NVIDIA's driver. Failures are
// thrown as sdk::Error.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "backplane/sdk/fence.hpp"

namespace backplane::cuda {

// The functions of libcuda.so.1 that the backend calls.
#define BACKPLANE_CUDA_FUNCTIONS(X) \
  X(cuInit);                        \
  X(cuGetErrorName);                \
  X(cuDriverGetVersion);            \
  X(cuDeviceGetCount);              \
  X(cuDeviceGet);                   \
  X(cuDeviceGetName);               \
  X(cuDeviceGetAttribute);          \
  X(cuDeviceGetPCIBusId);           \
  X(cuDeviceTotalMem);              \
  X(cuDevicePrimaryCtxRetain);      \
  X(cuDevicePrimaryCtxRelease);     \
  X(cuCtxPushCurrent);              \
  X(cuCtxPopCurrent);               \
  X(cuCtxGetDevice);                \
  X(cuModuleLoadData);              \
  X(cuModuleUnload);                \
  X(cuModuleGetFunction);           \
  X(cuLaunchKernel);                \
  X(cuMemAlloc);                    \
  X(cuMemFree);                     \
  X(cuMemHostAlloc);                \
  X(cuMemFreeHost);                 \
  X(cuMemHostGetDevicePointer);     \
  X(cuMemHostRegister);             \
  X(cuMemHostUnregister);           \
  X(cuPointerGetAttributes);        \
  X(cuMemcpyHtoDAsync);             \
  X(cuMemcpyDtoHAsync);             \
  X(cuMemcpyDtoDAsync);             \
  X(cuMemcpyPeerAsync);             \
  X(cuMemsetD32Async);              \
  X(cuStreamCreate);                \
  X(cuStreamDestroy);               \
  X(cuStreamSynchronize);           \
  X(cuStreamQuery);                 \
  X(cuStreamWaitEvent);             \
  X(cuStreamWaitValue32);           \
  X(cuStreamGetCtx);                \
  X(cuEventCreate);                 \
  X(cuEventDestroy);                \
  X(cuEventRecord);                 \
  X(cuEventQuery);                  \
  X(cuEventSynchronize);            \
  X(cuEventElapsedTime);            \
  X(cuStreamBeginCapture);          \
  X(cuStreamEndCapture);            \
  X(cuStreamIsCapturing);           \
  X(cuGraphInstantiate);            \
  X(cuGraphLaunch);                 \
  X(cuGraphExecDestroy);            \
  X(cuGraphDestroy);

// NOLINTBEGIN(readability-identifier-naming): members have the names of the driver's functions
struct Functions {
#define BACKPLANE_CUDA_MEMBER(name) decltype(&::name) name
  BACKPLANE_CUDA_FUNCTIONS(BACKPLANE_CUDA_MEMBER)
#undef BACKPLANE_CUDA_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// The driver's functions, loaded by the first call and never unloaded. Throws BP_UNSUPPORTED with the reason if there
// is no usable driver.
const Functions& cuda();

// Throws sdk::Error when `status` is not CUDA_SUCCESS. `what` names the object or action, such as "buffer of 12 bytes".
void check(CUresult status, std::string_view what);
sdk::Error error_of(CUresult status, std::string_view what);
std::string error_name(CUresult status);

// The framework's context, or the device's primary context if `framework` is null. The destructor releases the primary
// context.
class Context {
 public:
  Context(CUdevice device, CUcontext framework);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  CUcontext get() const { return context_; }

 private:
  CUdevice device_;
  CUcontext context_;
  bool primary_;
};
using SharedContext = std::shared_ptr<const Context>;

// Makes the context current on this thread while this object lives; the destructor restores the previous context.
class Current {
 public:
  explicit Current(const Context& context);
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current();
};

}  // namespace backplane::cuda
