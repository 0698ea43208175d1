// SPDX-License-Identifier: Apache-2.0
// The verdict on a node: the one predicate that both coverage and compilation use.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "runtime/row.h"

namespace backplane::cpu {

class Device;

// Whether the node, whose operators() are set, can be run; if so, sets `out_row` (may be null) to its row.
Verdict judge(const Node& node, const Row** out_row);

// Whether the graph in an attribute has these numbers of inputs and outputs, and all its nodes can be run.
Verdict supports_body(const Node& node, std::string_view name, uint32_t inputs, uint32_t outputs);

// The newest operator set known for each domain.
inline constexpr bp_opset_t kNewestOpsets[] = {{{"", 0}, 27, 0},
                                               {{"ai.onnx.ml", 10}, 5, 0},
                                               {{"ai.onnx.preview", 15}, 1, 0},
                                               {{"ai.onnx.preview.training", 24}, 1, 0},
                                               {{"com.microsoft", 13}, 1, 0}};

// Data types that values may have on this device.
bp_dtype_set_t supported_dtypes();

// Returns the seconds that the node takes at the device's nominal rates, 0 if extents are unknown.
double estimate(const Row& row, const Node& node, const Device& device);

// Reports the verdicts on all nodes of the query. Throws sdk::Error.
void cover(const Device& device, sdk::Coverage& coverage);

}  // namespace backplane::cpu
