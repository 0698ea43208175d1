// SPDX-License-Identifier: Apache-2.0
// What the device says of a node: the one predicate that both coverage and compilation ask.
#pragma once

#include "engine/kernel.h"

namespace backplane::cpu {

class Device;

// Whether the node can be run; then `out_row` (may be null) is its row.
Verdict judge(const Node& node, const Row** out_row);

// The newest operator set known for each domain. Static.
std::span<const bp_opset_t> newest_opsets();

// Data types that values may have on this device.
bp_dtype_set_t supported_dtypes();

// Seconds that the node takes at the device's nominal rates, 0 where extents are unknown.
double estimate(const Node& node, const Device& device);

// Answers a coverage query. Throws sdk::Error.
void cover(const Device& device, const bp_coverage_query_t& query, const bp_coverage_sink_t& sink);

}  // namespace backplane::cpu
