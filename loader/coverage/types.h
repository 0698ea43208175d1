// SPDX-License-Identifier: Apache-2.0
// Output types of operators of foreign domains, which only backends know.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// Queries, for each such node, the first device that supports it and has the slot `infer`. If devices report new types,
// `model` becomes a copy with these and all types that follow (nodes and values keep their numbers), and the result is
// true: coverage must be queried again. Errors: BP_INVALID_MODEL (the device contradicts the model), BP_INTERNAL (the
// device reported an impossible type).
Result<bool> learn_types(std::shared_ptr<const model::Model>& model, const std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
