// SPDX-License-Identifier: Apache-2.0
// What a device does in a second, measured once and kept on disk: estimates for placement are made of it.
#pragma once

#include <optional>

namespace backplane::gpu {

class Device;
struct Facts;

struct Rates {
  double flops;           // fp32, a second
  double bandwidth;       // bytes a second, read and written
  double launch_seconds;  // of a kernel among others
};

// What was measured before on such a device and driver.
std::optional<Rates> known_rates(const Facts& facts);
// Measures in less than a tenth of a second, not counting the build of two small kernels, and keeps the result on disk.
Rates measure_rates(Device& device);

}  // namespace backplane::gpu
