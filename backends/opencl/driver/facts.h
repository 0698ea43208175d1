// SPDX-License-Identifier: Apache-2.0
// What OpenCL reports of its devices, asked once.
#pragma once

#include "driver/cl.h"
#include "engine/facts.h"

namespace backplane::opencl {

struct Found {
  cl_platform_id platform;
  cl_device_id id;
  gpu::Facts facts;
};

// All devices of all platforms. With none, `why_none` says why.
std::vector<Found> find_devices(std::string& why_none);

}  // namespace backplane::opencl
