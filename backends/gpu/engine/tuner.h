// SPDX-License-Identifier: Apache-2.0
// Chooses by measuring, once for a device and driver: the choice is kept on disk.
#pragma once

#include <vector>

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

// The fastest of the tiles that fit the device.
Tile tuned_tile(Device& device);
// Operations a second of products in a tile.
double product_flops(Device& device, const Tile& tile);

// ---- for measuring -------------------------------------------------------------------------------------------------

// A device that takes so long is slow, or simulated: no choice makes good what measuring would cost.
bool too_slow_to_measure(const DeviceCaps& caps);
// Numbers that make no slow ones.
void fill_with_0_5(const Queue& queue, const Buffer& buffer, uint64_t bytes);
// Buffers, then integers.
void set_arguments(const Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& numbers);
// Kernels one after the other, the shortest time of some; infinite where the device does not take them.
struct Start {
  const Kernel& kernel;
  Ranges ranges;
};
double shortest_seconds(const Queue& queue, const std::vector<Start>& starts);

}  // namespace backplane::gpu
