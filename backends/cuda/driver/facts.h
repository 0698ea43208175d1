// SPDX-License-Identifier: Apache-2.0
// What CUDA reports of its devices, asked once.
#pragma once

#include <string>
#include <vector>

#include "driver/cuda.h"
#include "engine/facts.h"

namespace backplane::cuda {

struct Found {
  CUdevice id;
  int major, minor;  // compute capability
  gpu::Facts facts;
};

// All devices of the driver. With none, `why_none` says why.
std::vector<Found> find_devices(std::string& why_none);

}  // namespace backplane::cuda
