// SPDX-License-Identifier: Apache-2.0
#include "engine/device_caps.h"

#include <algorithm>

#include "backplane/graph.hpp"

namespace backplane::gpu {

void DeviceCaps::estimate(double clock_hertz) {
  // Floating-point operations per cycle and compute unit. A CPU core does two vector multiply-adds, a GPU unit about 64
  // scalar ones. A scalar multiply-add counts as two operations.
  const double per_cycle = kind == BP_DEVICE_CPU ? 4.0 * float_lanes : 128.0;
  throughput.flops = units * clock_hertz * per_cycle;
  throughput.bandwidth = throughput.flops / 20;  // a guess: one byte per 20 operations
  throughput.launch_seconds = 20e-6;
  const std::optional<Throughput> known = stored_throughput(*this);
  measured = known.has_value();
  if (measured) throughput = *known;
  const auto first = std::ranges::find_if(tiles(kind), [this](const Tile& t) { return fits(*this, t); });
  if (first != tiles(kind).end()) tile = *first;
}

double DeviceCaps::reported_flops() const {
  constexpr double kEfficiency = 0.5;  // the share of the peak throughput that products and convolutions reach
  return throughput.flops * kEfficiency;
}

double DeviceCaps::reported_bandwidth() const {
  return kind == BP_DEVICE_CPU ? std::min(throughput.bandwidth, 8e9) : throughput.bandwidth;
}

bp_dtype_set_t DeviceCaps::dtypes() const {
  bp_dtype_set_t set = 0;
  for (const bp_dtype_t dtype :
       {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT8, BP_DTYPE_INT16, BP_DTYPE_INT32,
        BP_DTYPE_INT64, BP_DTYPE_UINT8, BP_DTYPE_UINT16, BP_DTYPE_UINT32, BP_DTYPE_UINT64, BP_DTYPE_BOOL})
    set |= bp_dtype_set_t{1} << dtype;
  if (fp64) set |= bp_dtype_set_t{1} << BP_DTYPE_DOUBLE;
  return set;
}

bp_device_info_t DeviceCaps::info() const {
  bp_device_info_t info{};
  info.kind = kind;
  info.flags = BP_DEVICE_DETERMINISTIC;
  if (unified) info.flags |= BP_DEVICE_UNIFIED_MEMORY;
  if (!subnormals) info.flags |= BP_DEVICE_FLUSHES_SUBNORMALS;
  info.name = view::text(name);
  info.vendor = view::text(vendor);
  info.driver = view::text(driver);
  info.arch = view::text(arch);
  info.pci = view::text(pci);
  info.memory_bytes = memory_bytes;
  info.memory_bandwidth = static_cast<uint64_t>(reported_bandwidth());
  info.launch_ns = static_cast<uint64_t>(throughput.launch_seconds * 1e9);
  info.flops_fp32 = reported_flops();
  info.flops_fp16 = fp16 ? reported_flops() : 0;
  info.dtypes = dtypes();
  info.space_count = unified ? 2 : 1;
  info.peers = peers.data();
  info.peer_count = static_cast<uint32_t>(peers.size());
  return info;
}

}  // namespace backplane::gpu
