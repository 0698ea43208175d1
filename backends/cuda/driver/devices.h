// SPDX-License-Identifier: Apache-2.0
// The devices that CUDA reports, with their properties.
#pragma once

#include <string>
#include <vector>

#include "driver/cuda.h"
#include "engine/device_caps.h"

namespace backplane::cuda {

// The most groups of a launch in its second and in its third dimension. In the first, every device allows 2^31 - 1.
inline constexpr size_t kMaxGroupsAcross = 65535;

struct FoundDevice {
  CUdevice id;
  int major, minor;  // compute capability
  gpu::DeviceCaps caps;
};

// Queries all devices of the driver, and leaves out those of which a query fails. If there is no driver or no device,
// sets `why_none` to the reason. Throws if the driver does not start, or if a query fails for each device.
std::vector<FoundDevice> find_devices(std::string& why_none);

}  // namespace backplane::cuda
