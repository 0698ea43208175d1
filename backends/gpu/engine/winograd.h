// SPDX-License-Identifier: Apache-2.0
// The parameters of kernels/winograd.cl for a device, and the throughput that decides whether it is faster than a
// product with the windows as columns.
#pragma once

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

struct WinogradCut {
  int64_t panel;   // tiles: width of the product's panels; 0: the matrices lie as they are
  int64_t vector;  // tiles that an item of winograd_input takes
  int64_t lanes;   // and one of winograd_output
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
// Measured with the device's tile, once for a device and driver: kept on disk. kNever if the device is too slow to
// measure.
WinogradThroughput winograd_throughput(Device& device);

}  // namespace backplane::gpu
