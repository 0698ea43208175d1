// SPDX-License-Identifier: Apache-2.0
// Measures nodes and copies on this machine.
#pragma once

#include <memory>
#include <vector>

#include "coverage/coverage.h"
#include "session/session.h"

namespace backplane {

// Runs each node that a device supports as a separate model on that device, once for each key (cost_profile.h), and
// stores the median, less the launch cost, in the device's profile and in the verdicts. Nodes that cannot run alone
// (they need their neighbours, or inputs that cannot be generated) keep their previous cost. Errors: BP_CANCELLED.
Status measure_nodes(const std::shared_ptr<Environment>& environment, const model::Model& model,
                     const SessionRequest& request, std::vector<DeviceCoverage>& coverage);

// Measures copies that no profile has yet, hence once on each machine: between host memory and these devices' memories,
// and directly between devices. If a measurement fails, the bandwidth that the device reports is used.
void measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage);

}  // namespace backplane
