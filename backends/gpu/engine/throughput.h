// SPDX-License-Identifier: Apache-2.0
// The throughput of a device, measured once and stored on disk: the basis of estimates for placement.
#pragma once

#include <optional>

namespace backplane::gpu {

class Device;
struct DeviceCaps;

struct Throughput {
  double flops;           // fp32 operations a second
  double bandwidth;       // bytes a second, read and written
  double launch_seconds;  // per kernel in a sequence of kernels
};

// The measurement of an earlier process for this device and driver; nullopt if there is none.
std::optional<Throughput> stored_throughput(const DeviceCaps& caps);
// Measures, mostly in less than 0.1 s plus the build of two small kernels, and stores the result on disk.
Throughput measure_throughput(Device& device);

}  // namespace backplane::gpu
