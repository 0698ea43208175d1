// SPDX-License-Identifier: Apache-2.0
// What a placement's parts are expected to cost, in seconds.
#pragma once

#include "coverage/coverage.h"
#include "model/graph.h"

namespace backplane {

// A value's size. An extent that the model leaves open counts as 64, within what its symbol may be; an unknown shape as
// 4096 elements; what is no tensor as 4096 bytes.
double value_bytes(const model::Graph& graph, model::ValueId value);

// A node on a device: what the device said, and where it said nothing an estimate: the slower of operations / device's
// rate and bytes read and written / device's bandwidth, on top of what one operator costs at least. Rates that the
// device does not tell are those of its kind in the table of cost.cpp. Never 0: a device that gives no cost has no
// advantage by it.
double node_seconds(const model::Graph& graph, const model::Node& node, const NodeVerdict& verdict,
                    const bp_device_info_t& info);

// Whether the device works on host memory.
bool in_host_memory(const Device& device);

// What a copy costs: seconds + bytes * seconds_per_byte.
struct CopyRate {
  double seconds = 0;
  double seconds_per_byte = 0;
};

// Between the memories of two devices; null is the host's. Devices that share a memory copy nothing. Devices of one
// backend that are peers copy directly, others through the host. A link whose bandwidth is not told counts as 10 GB/s,
// and each copy as 10 µs beside its bytes.
CopyRate copy_rate(const Device* from, const Device* to);

// What running an island costs beside its nodes.
double launch_seconds(const Device& device);

}  // namespace backplane
