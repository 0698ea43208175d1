// SPDX-License-Identifier: Apache-2.0
// What a placement's parts are expected to cost, in seconds.
#pragma once

#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// An extent that the model leaves open counts as 64, within what its symbol may be.
int64_t expected_extent(const model::Graph& graph, const bp_dim_t& dim);

// A value's size. An unknown shape counts as 4096 elements; what is no tensor as 4096 bytes.
double value_bytes(const model::Graph& graph, model::ValueId value);

// Arithmetic operations of a node, a multiply-add two; about, where they follow from more than extents.
double operations(const model::Graph& graph, const model::Node& node);

// A node on a device: what the device said, and where it said nothing an estimate: the slower of operations / device's
// rate and bytes read and written / device's bandwidth, on top of what one operator costs at least. Rates that the
// device does not tell are those of its kind in the table of cost.cpp. Never 0: a device that gives no cost has no
// advantage by it.
double node_seconds(const model::Graph& graph, const model::Node& node, const NodeVerdict& verdict,
                    const bp_device_info_t& info);

// Whether the device works on host memory.
bool in_host_memory(const Device& device);

// The two copies of which the times tell a rate.
constexpr uint64_t kSmallCopy = 4096, kLargeCopy = 4 << 20;

// What a copy costs: seconds + bytes * seconds_per_byte.
struct CopyRate {
  double seconds = 0;
  double seconds_per_byte = 0;
  Source source = Source::kEstimate;
};

// Whether the two copy between each other without the host.
bool peers(const Device& from, const Device& to);

// Between the memories of two devices; null is the host's. Devices that share a memory copy nothing. Peers copy
// directly, others through the host. What their profiles know counts; otherwise a copy takes 10 µs and its bytes at the
// bandwidth that the device tells for its link, or at 10 GB/s.
CopyRate copy_rate(const DeviceCoverage* from, const DeviceCoverage* to);

// What running an island costs beside its nodes.
double launch_seconds(const Device& device);

}  // namespace backplane
