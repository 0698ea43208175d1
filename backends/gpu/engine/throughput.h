// SPDX-License-Identifier: Apache-2.0
// The throughput of a device, measured once and stored on disk. Cost estimates for placement are based on it.
#pragma once

#include <optional>

namespace backplane::gpu {

class Device;
struct DeviceCaps;

struct Throughput {
  double flops;           // fp32 operations per second
  double bandwidth;       // bytes per second, read plus written
  double launch_seconds;  // seconds per kernel, in a sequence of short kernels
};

// The measurement of an earlier process for this device and driver; nullopt if there is none.
std::optional<Throughput> stored_throughput(const DeviceCaps& caps);
// Measures the throughput and stores it on disk. Usually takes less than 0.1 s, plus the build of two small kernels.
Throughput measure_throughput(Device& device);

}  // namespace backplane::gpu
