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

}  // namespace standin
