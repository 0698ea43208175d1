// SPDX-License-Identifier: Apache-2.0
// Measures nodes and copies on this machine.
#pragma once

#include <memory>
#include <vector>

#include "coverage/coverage.h"
#include "session/session.h"

namespace backplane {

// Runs each node that a device supports as a model of its own on that device, once for each key (cost_profile.h), and
// stores the median in the device's profile and in the verdicts. Nodes that cannot run alone (they need their
// neighbours, or inputs that cannot be generated) keep the cost they had. Errors: BP_CANCELLED.
Status measure_nodes(const std::shared_ptr<Environment>& environment, const model::Model& model,
                     const SessionRequest& request, std::vector<DeviceCoverage>& coverage);

// Measures copies between the memories of these devices and the host's that no profile has yet, hence once on each
// machine. Where that fails, the costs that the device reports are used.
void measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
