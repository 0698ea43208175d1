// SPDX-License-Identifier: Apache-2.0
// Infers output types of operators of foreign domains, by querying backends.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// For each node of a foreign domain, queries the first device that supports it and has the slot `infer`. If a device
// reports new types, replaces `model` by a copy with these and all types that follow from them, and returns true:
// coverage must be queried again. Nodes and values keep their numbers. Errors: BP_INVALID_MODEL if a device contradicts
// the model, BP_INTERNAL if it reports an impossible type, or the error that the device returned.
Result<bool> learn_types(std::shared_ptr<const model::Model>& model, const std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
