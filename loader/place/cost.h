// SPDX-License-Identifier: Apache-2.0
// Expected costs of nodes, copies and launches, in seconds.
#pragma once

#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// The number of elements that cost estimates assume for a dimension: its extent, or if the model leaves that open, what
// its symbol is expected to be (ir/formula.h).
int64_t expected_extent(const model::Graph& graph, const bp_dim_t& dim);

// A value's size in bytes. An unknown shape counts as 4096 elements, a value that is not a tensor as 4096 bytes.
double value_bytes(const model::Graph& graph, model::ValueId value);

// The number of arithmetic operations of a node; a multiply-add counts as two. Estimated if extents alone do not
// determine it.
double operations(const model::Graph& graph, const model::Node& node);

// The cost of a node on a device, as reported by the device. Without a report, estimated as the larger of operations /
// rate and bytes read and written / bandwidth, plus a minimum per operator. Rates that the device does not report come
// from the table in cost.cpp, by kind of device. Never 0, so that a device gains nothing by reporting no cost.
double node_seconds(const model::Graph& graph, const model::Node& node, const NodeVerdict& verdict,
                    const bp_device_info_t& info);

// Whether the device works on host memory.
bool in_host_memory(const Device& device);

// Bytes of the two copies from whose times latency and bandwidth are computed.
constexpr uint64_t kSmallCopy = 4096, kLargeCopy = 4 << 20;

// The cost of a copy: seconds + bytes * seconds_per_byte.
struct CopyRate {
  double seconds = 0;
  double seconds_per_byte = 0;
  Source source = Source::kEstimate;
};

// Whether the devices can copy to each other without going through the host.
bool can_copy_directly(const Device& from, const Device& to);

// The rate of a copy between the memories of two devices; null stands for the host. Copies between devices that share
// memory are free. Peers copy directly, other devices through the host. Measured rates are preferred. Without them, a
// copy takes 10 µs plus its bytes divided by the link bandwidth that the device reports, or by 10 GB/s.
CopyRate copy_rate(const DeviceCoverage* from, const DeviceCoverage* to);

// The cost of starting an island, in addition to the cost of its nodes.
double launch_seconds(const Device& device);

}  // namespace backplane
