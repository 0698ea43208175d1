// SPDX-License-Identifier: Apache-2.0
// Test code: devices and contexts of the stand-in for libcuda.so.1.
#pragma once

#include <cuda.h>

struct CUctx_st {
  CUdevice device;
};

namespace standin {

// This thread's current context, or NULL.
CUcontext current_context();
// The device of the memory that contains the address or ends at it, or -1 if there is none.
CUdevice device_of(CUdeviceptr address);

}  // namespace standin
