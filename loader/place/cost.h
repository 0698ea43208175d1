// SPDX-License-Identifier: Apache-2.0
// Expected costs of nodes, copies and launches, in seconds.
#pragma once

#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// An extent that the model leaves open counts as 64, within what its symbol may be.
int64_t expected_extent(const model::Graph& graph, const bp_dim_t& dim);

// A value's size. An unknown shape counts as 4096 elements, a value that is not a tensor as 4096 bytes.
double value_bytes(const model::Graph& graph, model::ValueId value);

// Arithmetic operations of a node; a multiply-add counts as two. An estimate where extents alone do not decide.
double operations(const model::Graph& graph, const model::Node& node);

// The cost of a node on a device: the one that the device reported, otherwise an estimate, the slower of operations /
// rate and bytes read and written / bandwidth, plus a minimum per operator. Rates that the device does not report are
// those of its kind in the table of cost.cpp. Never 0: a device gains nothing by reporting no cost.
double node_seconds(const model::Graph& graph, const model::Node& node, const NodeVerdict& verdict,
                    const bp_device_info_t& info);

// Whether the device works on host memory.
bool in_host_memory(const Device& device);

// The sizes of the two copies whose times yield latency and bandwidth.
constexpr uint64_t kSmallCopy = 4096, kLargeCopy = 4 << 20;

// The cost of a copy: seconds + bytes * seconds_per_byte.
struct CopyRate {
  double seconds = 0;
  double seconds_per_byte = 0;
  Source source = Source::kEstimate;
};

// Whether the two devices copy to each other without the host.
bool can_copy_directly(const Device& from, const Device& to);

// Between the memories of two devices; null is the host's. Devices that share a memory copy nothing. Peers copy
// directly, others through the host. Measurements come first; otherwise a copy takes 10 µs plus its bytes at the link
// bandwidth that the device reports, or at 10 GB/s.
CopyRate copy_rate(const DeviceCoverage* from, const DeviceCoverage* to);

// The cost of starting an island, in addition to its nodes.
double launch_seconds(const Device& device);

}  // namespace backplane
