// SPDX-License-Identifier: Apache-2.0
// Types that only backends know: of what nodes of foreign domains give out.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "coverage/coverage.h"
#include "ir/graph.h"

namespace backplane {

// Asks each node's first device that claims it and has the slot `infer`. Where that tells something new, `model`
// becomes a copy with it and what follows from it (nodes and values keep their numbers), and the answer is true:
// devices should be asked again. Errors: BP_INVALID_MODEL (the device, or what the model declares, contradicts),
// BP_INTERNAL (the device told a type that cannot be).
Result<bool> learn_types(std::shared_ptr<const model::Model>& model, const std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
