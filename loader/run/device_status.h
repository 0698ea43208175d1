// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// What a device's plugin said of a call. Success costs nothing: bound runs go through here.
inline Status device_status(const Device& device, const PluginError& error, bp_status_t code) {
  if (code == BP_OK) return {};
  return error.status(code, "device '" + device.name() + "'");
}

}  // namespace backplane
