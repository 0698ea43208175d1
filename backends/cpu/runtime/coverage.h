// SPDX-License-Identifier: Apache-2.0
// Decides whether the device supports a node. Coverage and compilation both use this verdict.
#pragma once

#include "backplane/sdk/coverage.hpp"
#include "runtime/row.h"

namespace backplane::cpu {

class Device;

// Whether the device supports the node. If it does, sets `*out_row` to the operator's row; `out_row` may be null.
// node.operators() must be set.
Verdict judge(const Node& node, const Row** out_row);

// Whether the subgraph in the attribute `name` has these numbers of inputs and outputs, and the device supports all of
// its nodes.
Verdict supports_body(const Node& node, std::string_view name, uint32_t inputs, uint32_t outputs);

// The newest opset that this backend supports, by domain.
inline constexpr bp_opset_t kNewestOpsets[] = {{{"", 0}, 28, 0},
                                               {{"ai.onnx.ml", 10}, 5, 0},
                                               {{"ai.onnx.preview", 15}, 1, 0},
                                               {{"ai.onnx.preview.training", 24}, 1, 0},
                                               {{"com.microsoft", 13}, 1, 0}};

// Returns the data types that this device supports.
bp_dtype_set_t supported_dtypes();

// Returns an estimate of the node's run time in seconds, at the rates that the device assumes (Device::flops and
// bytes_per_second). Returns 0 if an extent of an input or output is unknown.
double estimate(const Row& row, const Node& node, const Device& device);

// Reports the verdicts on all nodes of a coverage query. Throws sdk::Error.
void cover(const Device& device, sdk::Coverage& coverage);

}  // namespace backplane::cpu
