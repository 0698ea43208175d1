// SPDX-License-Identifier: Apache-2.0
// Creates a plugin's backend and lists its devices. Used by the loader and by the probe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "discover/refusal.h"
#include "host/host.h"

namespace backplane {

// Calls the plugin's `create` for `backend`, whose tables, id and library are set. Creates a host first if it has none.
// `folder` contains the plugin's files. BP_REFUSED_CREATE if `create` fails.
Refusal create_backend(Backend& backend, const std::string& folder, std::shared_ptr<Services> services,
                       Host::Options options);

// Checks the sizes in a device's description. Returns an error text, or an empty string if they are valid.
std::string wrong_size(const bp_device_info_t& info);

// Appends the plugin's descriptions of its devices, whose texts and arrays the plugin owns. BP_REFUSED_DEVICES if the
// plugin reports an error, no devices or too many, or if a description contains an invalid size. If the plugin can
// count its devices, sets `out_none`, unless it is null, to whether it has none here.
Refusal survey_devices(Backend& backend, std::vector<bp_device_info_t>& out_devices, bool* out_none = nullptr);

}  // namespace backplane
