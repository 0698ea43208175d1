// SPDX-License-Identifier: Apache-2.0
// Finds out what nodes and copies take on this machine.
#pragma once

#include <memory>
#include <vector>

#include "coverage/coverage.h"
#include "session/session.h"

namespace backplane {

// Runs each node that a device takes as a model of its own on that device, once for each key (cost_profile.h), and puts
// the median into the device's profile and into the verdicts. Nodes that cannot run so (they need their neighbours, or
// inputs that nobody can make up) keep the cost they had. Errors: BP_CANCELLED.
Status measure_nodes(const std::shared_ptr<Environment>& environment, const model::Model& model,
                     const SessionRequest& request, std::vector<DeviceCoverage>& coverage);

// Copies between the memories of these devices and the host's: what no profile knows yet is measured, so once on each
// machine. What fails stays as the device tells it.
void measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
