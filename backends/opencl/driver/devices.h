// SPDX-License-Identifier: Apache-2.0
// Finds the usable OpenCL devices and their properties.
#pragma once

#include "driver/cl.h"
#include "engine/device_caps.h"

namespace backplane::opencl {

struct FoundDevice {
  cl_platform_id platform;
  cl_device_id id;
  gpu::DeviceCaps caps;
};

// Queries all platforms and returns their usable devices: those that are available and have a compiler. If there are
// none, sets `why_none` to the reason.
std::vector<FoundDevice> find_devices(std::string& why_none);

}  // namespace backplane::opencl
