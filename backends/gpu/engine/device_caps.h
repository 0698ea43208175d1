// SPDX-License-Identifier: Apache-2.0
// What a device reports of itself, and what was measured of it.
#pragma once

#include <string>

#include "backplane/plugin.h"
#include "engine/throughput.h"
#include "engine/tile.h"
#include "engine/winograd.h"

namespace backplane::gpu {

struct DeviceCaps {
  std::string backend;  // its id: names the folder of the disk cache
  std::string name, vendor, driver, arch, pci;
  std::string identity;             // all that a binary and a measurement depend on
  uint32_t kind = BP_DEVICE_GPU;    // BP_DEVICE_*
  bool unified = false;             // reads and writes host memory without a copy
  bool mappable = false;            // the host can map its memory
  bool fp64 = false, fp16 = false;  // computes in them; fp16 is stored and loaded without
  bool subnormals = true;           // keeps them in fp32
  bool local_memory = true;         // has fast memory for a work group
  bool binaries = true;             // of its kernels are kept here, not by the driver alone
  uint32_t units = 1;               // compute units
  uint32_t float_lanes = 1;         // of a vector register; 1 where there is none to see
  uint32_t alignment = 1;           // bytes, of a sub-buffer's offset
  uint64_t memory_bytes = 0, max_buffer_bytes = 0, local_bytes = 0;
  size_t max_group = 1;         // work items
  Throughput throughput{};      // what units, lanes and clock allow, until they are measured
  bool measured = false;        // they are
  Tile tile{4, 4, 1};           // the first that fits, until one is chosen
  WinogradThroughput winograd;  // with that tile

  // Sets throughput and tile from what is known of the device: the last step of filling this in.
  void estimate(double clock_hertz);
  // What estimates are made with, bytes a second. The memory of a CPU is as fast for the host's own backend, which
  // does not report its rate and is taken for 10 GB/s: were it reported faster here, nodes between would change sides
  // for nothing.
  double reported_bandwidth() const;
  bp_dtype_set_t dtypes() const;
  bp_device_info_t info() const;
};

}  // namespace backplane::gpu
