// SPDX-License-Identifier: Apache-2.0
// Chooses the tile for matrix products by measuring, once per device and driver, and stores the choice on disk.
#pragma once

#include <vector>

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

// The fastest of `tiles` that fit the device, or the first of them if the device is too slow to measure.
Tile tuned_tile(Device& device);
// The operations per second of products computed with a tile.
double product_flops(Device& device, const Tile& tile);

// ---- for measuring -------------------------------------------------------------------------------------------------

// Whether the device is so slow, for example simulated, that measuring would cost more than it gains.
bool too_slow_to_measure(const DeviceCaps& caps);
// Fills the buffer with floats of 0.5, which produce no subnormal results. `bytes` must be a multiple of 4.
void fill_with_0_5(const Queue& queue, const Buffer& buffer, uint64_t bytes);
// Sets a kernel's arguments: buffers, then numbers as 32-bit integers.
void set_arguments(const Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& numbers);
struct Start {
  const Kernel& kernel;
  Ranges ranges;
};
// The time of the shortest of several rounds that run these kernels in order; infinity if the device rejects a kernel.
double shortest_seconds(const Queue& queue, const std::vector<Start>& starts);

}  // namespace backplane::gpu
