// SPDX-License-Identifier: Apache-2.0
// Expected costs of nodes, copies and launches, in seconds.
#pragma once

#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// A value's size in bytes. A tensor of unknown rank counts as 4096 elements. A value that is not a tensor, or whose
// elements have an unknown or variable size, counts as 4096 bytes.
double value_bytes(const model::Graph& graph, model::ValueId value);

// The least size in bytes that a value can have in a run in which no extent that is known only at run time is 0:
// these extents have their lower bounds, at least 1. 0 if it is not a tensor, or has elements of unknown size.
double least_value_bytes(const model::Graph& graph, model::ValueId value);

// The number of arithmetic operations of a node; a multiply-add counts as two. Except for products, convolutions
// and Attention, estimated as a fixed number of operations for each element of the results.
double operations(const model::Graph& graph, const model::Node& node);

// The cost of a node on a device: `verdict.seconds`, which the device reported or a profile holds. If that is unknown,
// estimated as a fixed time per operator plus the larger of two times: operations divided by the device's rate, and
// bytes of inputs and outputs divided by its bandwidth. Rates that the device does not report come from the table in
// cost.cpp, by kind of device. Never 0, so that a device gains nothing by reporting no cost.
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

// Whether `to` can copy from the memory of `from` without going through the host. The reverse may differ.
bool can_copy_directly(const Device& from, const Device& to);

// The rate of a copy between the memories of two devices; null stands for the host. Copies are free within one device
// and between devices that work on host memory. Devices that can copy directly do so; for others, the cost is that of a
// copy to the host and one from it. Measured rates are preferred. Without them, a copy between a device and the host
// takes 10 µs plus its bytes divided by the link bandwidth that the device reports, or by 10 GB/s; a direct copy takes
// 10 µs plus the time per byte of the slower device.
CopyRate copy_rate(const DeviceCoverage* from, const DeviceCoverage* to);

// The cost of starting an island, in addition to the cost of its nodes.
double launch_seconds(const Device& device);

}  // namespace backplane
