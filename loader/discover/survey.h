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

// Calls `create` of `backend`, whose tables, id and library are set, and makes its host unless it has one; `folder` is
// where its files lie. BP_REFUSED_CREATE.
Refusal create_backend(Backend& backend, const std::string& folder, std::shared_ptr<Services> services,
                       Host::Options options);

// Checks a description; returns an error text, or an empty one.
std::string wrong_size(const bp_device_info_t& info);

// The plugin's descriptions of its devices. Texts and arrays are owned by the plugin; their sizes were checked.
// BP_REFUSED_DEVICES.
Refusal survey_devices(Backend& backend, std::vector<bp_device_info_t>& out_devices);

}  // namespace backplane
