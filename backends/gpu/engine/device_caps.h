// SPDX-License-Identifier: Apache-2.0
// The properties of a device, reported and measured.
#pragma once

#include <string>

#include "backplane/plugin.h"
#include "engine/throughput.h"
#include "engine/tile.h"
#include "engine/winograd.h"

namespace backplane::gpu {

struct DeviceCaps {
  std::string backend;  // the backend's id: names the disk cache's folder
  std::string name, vendor, driver, arch, pci;
  std::string identity;             // everything that binaries and measurements depend on
  uint32_t kind = BP_DEVICE_GPU;    // BP_DEVICE_*
  bool unified = false;             // reads and writes host memory without a copy
  bool mappable = false;            // the host can map its memory
  bool fp64 = false, fp16 = false;  // arithmetic in these types; fp16 is loaded and stored in any case
  bool subnormals = true;           // fp32 keeps subnormals
  bool local_memory = true;         // has fast memory for a work group
  bool binaries = true;             // this backend caches kernel binaries, not only the driver
  uint32_t units = 1;               // compute units
  uint32_t float_lanes = 1;         // of a vector register; 1 if there is none
  uint32_t alignment = 1;           // bytes, of a sub-buffer's offset
  uint64_t memory_bytes = 0, max_buffer_bytes = 0, local_bytes = 0;
  size_t max_group = 1;         // work items
  Throughput throughput{};      // an estimate from units, lanes and clock until measured
  bool measured = false;        // `throughput` is measured
  Tile tile{4, 4, 1};           // the first that fits, until Device::tune chooses one
  WinogradThroughput winograd;  // with that tile

  // Sets throughput (stored, else estimated) and tile (the first that fits) from the other members: call it last.
  void estimate(double clock_hertz);
  // The bandwidth for estimates, bytes a second. On a CPU at most 8 GB/s, below the 10 GB/s that the loader assumes for
  // the CPU backend, which uses the same memory and reports no bandwidth: otherwise nodes would move here for no gain.
  double reported_bandwidth() const;
  bp_dtype_set_t dtypes() const;
  bp_device_info_t info() const;
};

}  // namespace backplane::gpu
