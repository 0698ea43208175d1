// SPDX-License-Identifier: Apache-2.0
// The throughput of a device, measured once and stored on disk. Cost estimates for placement are based on it.
#pragma once

#include <functional>
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
// The shortest of several measurements. `seconds` does something and returns how long it took. Its first result does
// not count, because it may include the compilation of a kernel, which takes long on a busy machine. Stops early if the
// device is slow or simulated, but one result always counts.
double shortest_time(const std::function<double()>& seconds);

// Measures the throughput and stores it on disk. Usually takes less than 0.1 s, plus the build of two small kernels.
Throughput measure_throughput(Device& device);

}  // namespace backplane::gpu
