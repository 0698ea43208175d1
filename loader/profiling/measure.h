// SPDX-License-Identifier: Apache-2.0
// Measures nodes and copies on this machine.
#pragma once

#include <memory>
#include <vector>

#include "coverage/coverage.h"
#include "session/session.h"

namespace backplane {

// Runs the nodes that a device supports on that device, each as a separate model. Of nodes with the same profile key
// (cost_profile.h), runs only one. Stores the median time less the launch cost, but at least a tenth of the time, in
// the device's profile and in the verdicts. Nodes that cannot run alone, because they need adjacent nodes or inputs
// that cannot be generated, keep their previous cost. Errors: BP_CANCELLED.
Status measure_nodes(const std::shared_ptr<Environment>& environment, const model::Model& model,
                     const SessionRequest& request, std::vector<DeviceCoverage>& coverage);

// Measures the copies that no profile contains yet, so each is measured once per machine: between host memory and the
// memories of these devices, and directly between devices. If a measurement fails, copy_rate() in place/cost.h
// estimates from what the device reports. A device with streams whose copy does not end within 5 s, or
// 1 s after a cancellation, is abandoned. Errors: BP_CANCELLED, BP_DEVICE_LOST (one of the devices was abandoned).
Status measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage, const bp_cancel_t* cancel);

}  // namespace backplane
