// SPDX-License-Identifier: Apache-2.0
// The first stage of a session: chooses the devices, and queries the verdict of each device on each node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "coverage/coverage.h"
#include "discover/environment.h"
#include "ir/graph.h"
#include "place/place.h"

namespace backplane {

// The framework's request: a bp_session_desc_t with owned strings.
struct SessionRequest {
  std::vector<std::string> devices;  // in order of preference; empty: all devices
  Policy policy;
  uint32_t compute_types = 0;  // allowed BP_COMPUTE_* flags
  uint32_t flags = 0;          // BP_SESSION_* flags
  Costs costs = Costs::kKnown;
  std::map<std::string, Host::Options, std::less<>> options;
  std::vector<model::Symbol> symbols;  // the framework's ranges for dimensions
  const bp_cancel_t* cancel = nullptr;
  std::function<void(uint32_t, uint32_t)> progress;
};

struct Covered {
  std::shared_ptr<const model::Model> model;  // with the framework's ranges and the types that backends reported
  std::vector<DeviceCoverage> devices;        // in order of preference
};

// If `request` lists no devices, all are used except abandoned ones and, with a warning, those that cannot be opened or
// queried; if none can be queried, the first error is returned. Other errors: BP_NOT_FOUND (unknown device or
// dimension, or no device), BP_INVALID_ARGUMENT (ranges of a dimension that exclude each other), BP_CANCELLED, and
// errors of the devices and of learn_types.
Result<Covered> cover(const Environment& environment, std::shared_ptr<const model::Model> model,
                      const SessionRequest& request);

}  // namespace backplane
