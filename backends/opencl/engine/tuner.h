// SPDX-License-Identifier: Apache-2.0
// Chooses by measuring, once for a device and driver: the choice is kept on disk.
#pragma once

#include "engine/tile.h"

namespace backplane::opencl {

class Device;

// The fastest of the tiles that fit the device.
Tile tuned_tile(Device& device);

}  // namespace backplane::opencl
