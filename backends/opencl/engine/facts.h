// SPDX-License-Identifier: Apache-2.0
// What a device says of itself, asked once.
#pragma once

#include "backplane/plugin.h"
#include "engine/cl.h"
#include "engine/rates.h"
#include "engine/winograd.h"

namespace backplane::opencl {

struct Facts {
  Facts(cl_platform_id platform, cl_device_id id);

  cl_platform_id platform;
  cl_device_id id;
  std::string name, vendor, driver, arch, pci;
  uint32_t kind;         // BP_DEVICE_*
  bool unified;          // reads and writes host memory without a copy
  bool fp64, fp16;       // computes in them; both are stored and loaded without
  bool subnormals;       // keeps them in fp32
  bool exact_division;   // fp32 division and square root can be correctly rounded
  bool local_memory;     // has fast memory for a work group
  bool out_of_order;     // can run commands of a queue beside each other; once the backend has chosen: and does
  bool binaries;         // of its kernels are kept here, not by the driver alone
  uint32_t units;        // compute units
  uint32_t float_lanes;  // of a vector register; 1 where there is none to see
  uint32_t alignment;    // bytes, of a sub-buffer's offset
  uint64_t memory_bytes, max_buffer_bytes, local_bytes;
  size_t max_group;        // work items
  Rates rates;             // what units, lanes and clock allow, until they are measured
  bool measured;           // they are
  Tile tile;               // the first that fits, until one is chosen
  WinogradRates winograd;  // with that tile

  // What estimates are made with, bytes a second. The memory of a CPU is as fast for the host's own backend, which does
  // not tell its rate and is taken for 10 GB/s: told any faster here, nodes between would change sides for nothing.
  double told_bandwidth() const;
  bp_dtype_set_t dtypes() const;
  bp_device_info_t info() const;
  // All that a binary depends on.
  std::string identity() const;
};

// All devices of all platforms. With none, `why_none` says why.
std::vector<Facts> find_devices(std::string& why_none);

}  // namespace backplane::opencl
