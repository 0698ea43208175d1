// SPDX-License-Identifier: Apache-2.0
// The parameters of kernels/winograd.cl for a device, and the throughput that decides whether Winograd's method is
// faster than a product with the windows as columns.
#pragma once

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

struct WinogradCut {
  int64_t panel;   // width of the product's panels in tiles; 0: the matrices have no panels
  int64_t vector;  // tiles that an item of winograd_input transforms
  int64_t lanes;   // tiles that an item of winograd_output transforms
  int64_t tiles;

  int64_t columns() const;  // of a matrix in memory, for `tiles` tiles
  std::string input_options() const;
  std::string output_options(bool bias) const;
};
// For products of `maps` × `tiles`; there are `line` tiles in a line.
WinogradCut winograd_cut(const DeviceCaps& caps, int64_t maps, int64_t tiles, int64_t line);

struct WinogradThroughput {
  enum class Use { kNever, kMeasured, kAlways } use = Use::kNever;
  double flops = 0;     // of products in the device's tile, a second
  double elements = 0;  // elements that the transforms write and read a second
};
// Measured with the device's tile, once for a device and driver, and stored on disk. kNever if the device is too slow
// to measure or refuses the kernels.
WinogradThroughput winograd_throughput(Device& device);

}  // namespace backplane::gpu
