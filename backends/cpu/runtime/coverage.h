// SPDX-License-Identifier: Apache-2.0
// What the device says of a node: the one predicate that both coverage and compilation ask.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "runtime/kernel.h"

namespace backplane::cpu {

class Device;

// Whether the node can be run; then `out_row` (may be null) is its row.
Verdict judge(const Node& node, const Row** out_row);

// The newest operator set known for each domain.
inline constexpr bp_opset_t kNewestOpsets[] = {{{"", 0}, 27, 0},
                                               {{"ai.onnx.ml", 10}, 5, 0},
                                               {{"ai.onnx.preview", 15}, 1, 0},
                                               {{"ai.onnx.preview.training", 24}, 1, 0},
                                               {{"com.microsoft", 13}, 1, 0}};

// Data types that values may have on this device.
bp_dtype_set_t supported_dtypes();

// Seconds that the node takes at the device's nominal rates, 0 where extents are unknown.
double estimate(const Node& node, const Device& device);

// Answers for all nodes that are asked about. Throws sdk::Error.
void cover(const Device& device, sdk::Coverage& coverage);

}  // namespace backplane::cpu
