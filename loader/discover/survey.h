// SPDX-License-Identifier: Apache-2.0
// Creates a negotiated plugin and lists its devices. Used by the loader and the probe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "discover/refusal.h"
#include "host/host.h"

namespace backplane {

// Calls `create` of `backend`, whose tables, id and library are set, after creating a host unless it has one; `folder`
// contains the plugin's files. BP_REFUSED_CREATE if `create` fails.
Refusal create_backend(Backend& backend, const std::string& folder, std::shared_ptr<Services> services,
                       Host::Options options);

// Checks the sizes in a device's description. Returns an error text, or an empty one.
std::string wrong_size(const bp_device_info_t& info);

// Appends the plugin's descriptions of its devices. The plugin owns their texts and arrays; their sizes are checked.
// BP_REFUSED_DEVICES if a device cannot be described, has a wrong size, or there is none.
Refusal survey_devices(Backend& backend, std::vector<bp_device_info_t>& out_devices);

}  // namespace backplane
