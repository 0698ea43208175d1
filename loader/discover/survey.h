// SPDX-License-Identifier: Apache-2.0
// From a negotiated plugin to the descriptions of its devices. The probe does the same as the loader itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "discover/refusal.h"
#include "host/host.h"

namespace backplane {

// Calls `create` of `backend`, whose tables, id and library are set, and makes its host unless it has one; `folder` is
// where its files lie. BP_REFUSED_CREATE.
Refusal create_backend(Backend& backend, const std::string& folder, std::shared_ptr<Services> services,
                       Host::Options options);

// What of a description cannot be accepted; empty: nothing.
std::string wrong_size(const bp_device_info_t& info);

// What the plugin says of each device. Texts and arrays are the plugin's, of sizes that can be accepted.
// BP_REFUSED_DEVICES.
Refusal survey_devices(Backend& backend, std::vector<bp_device_info_t>& out_devices);

}  // namespace backplane
