// SPDX-License-Identifier: Apache-2.0
// Chooses tiles by measuring, once per device and driver; the choice is stored on disk.
#pragma once

#include <vector>

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

// The fastest of the tiles that fit the device.
Tile tuned_tile(Device& device);
// The operations a second of products computed with a tile.
double product_flops(Device& device, const Tile& tile);

// ---- for measuring -------------------------------------------------------------------------------------------------

// Whether the device is so slow, or simulated, that measuring would cost more than it gains.
bool too_slow_to_measure(const DeviceCaps& caps);
// Fills with 0.5, which produces no subnormals.
void fill_with_0_5(const Queue& queue, const Buffer& buffer, uint64_t bytes);
// Sets a kernel's arguments: buffers, then numbers as 32-bit integers.
void set_arguments(const Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& numbers);
// The shortest of several rounds in which these kernels run one after the other; infinite if the device refuses one.
struct Start {
  const Kernel& kernel;
  Ranges ranges;
};
double shortest_seconds(const Queue& queue, const std::vector<Start>& starts);

}  // namespace backplane::gpu
