// SPDX-License-Identifier: Apache-2.0
// The parameters of kernels/winograd.cl for a device, and the throughput that decides whether Winograd's method is
// faster than a matrix product whose columns are the windows.
#pragma once

#include "engine/tile.h"

namespace backplane::gpu {

class Device;

// How a convolution is divided into tiles of 2 × 2 output positions. Each tile is a column of the products' matrix B.
struct WinogradCut {
  int64_t panel;   // tiles in a panel of B (kernels/gemm.cl); 0: B has no panels
  int64_t vector;  // tiles that a work item of winograd_input transforms
  int64_t lanes;   // tiles that a work item of winograd_output transforms
  int64_t tiles;

  int64_t columns() const;  // of B in memory: `tiles`, rounded up to whole panels
  std::string input_options() const;
  std::string output_options(bool bias) const;
};
// Returns how the transforms of a convolution with `maps` output channels and `tiles` tiles are cut into work items. A
// row of the image has `line` tiles.
WinogradCut winograd_cut(const DeviceCaps& caps, int64_t maps, int64_t tiles, int64_t line);

struct WinogradThroughput {
  enum class Use { kNever, kMeasured, kAlways } use = Use::kNever;
  double flops = 0;     // operations per second of products in the device's tile
  double elements = 0;  // elements of transformed matrices that the transforms write or read per second
};
// Measured with the device's tile, once per device and driver, and stored on disk. kNever if the device is too slow to
// measure or rejects the kernels.
WinogradThroughput winograd_throughput(Device& device);

}  // namespace backplane::gpu
