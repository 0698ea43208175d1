// SPDX-License-Identifier: Apache-2.0
// The properties of a device, reported and measured.
#pragma once

#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "engine/convolution_library.h"
#include "engine/product_library.h"
#include "engine/throughput.h"
#include "engine/tile.h"
#include "engine/winograd.h"

namespace backplane::gpu {

struct DeviceCaps {
  std::string backend;  // the backend's id, which is also the name of the disk cache's folder
  std::string name, vendor, driver, arch, pci;
  std::string identity;             // identifies device and driver in the keys of stored binaries and measurements
  uint32_t kind = BP_DEVICE_GPU;    // BP_DEVICE_*
  bool unified = false;             // reads and writes host memory without a copy
  bool mappable = false;            // the host can map its memory
  bool fp64 = false, fp16 = false;  // has arithmetic in these types; every device loads and stores fp16
  bool subnormals = true;           // fp32 keeps subnormals
  bool binaries = true;             // the backend itself stores kernel binaries on disk
  uint32_t units = 1;               // compute units
  uint32_t float_lanes = 1;         // floats in a vector register; 1 without vector registers
  uint32_t alignment = 1;           // in bytes, required of the offset of a sub-buffer
  uint64_t memory_bytes = 0, max_buffer_bytes = 0, local_bytes = 0;
  size_t max_group = 1;                   // the largest work group, in work items
  size_t max_groups_across = UINT32_MAX;  // the most work groups of a launch in its second and in its third dimension
  // Indices of the backend's devices from whose memory a queue of this device can copy.
  std::vector<uint32_t> peers;
  Throughput throughput{};  // estimated from units, lanes and clock until it is measured
  bool measured = false;
  Tile tile{4, 4, 1};           // the first one that fits, until Device::tune chooses one
  WinogradThroughput winograd;  // measured with `tile`
  // The driver's libraries; NULL if it has none, or if the option `products` or `convolutions` is "own".
  const ProductLibrary* products = nullptr;
  const ConvolutionLibrary* convolutions = nullptr;

  // Sets `throughput` to the stored measurement, or estimates it, and sets `tile` to the first one that fits. Call this
  // after the other members are set.
  void estimate(double clock_hertz);
  // The fp32 operations per second that products and convolutions reach, for cost estimates.
  double reported_flops() const;
  // The bandwidth for cost estimates, in bytes per second. For a CPU device it is at most 8 GB/s, less than the 10 GB/s
  // that the loader assumes for the CPU backend. Both use the same memory: with a higher number, the loader would place
  // nodes on this device for no gain.
  double reported_bandwidth() const;
  bp_dtype_set_t dtypes() const;
  bp_device_info_t info() const;  // the result points into this object
};

}  // namespace backplane::gpu
