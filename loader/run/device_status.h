// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// The status of a call into a device's plugin. Success costs nothing: bound runs come through here.
inline Status device_status(const Device& device, const PluginError& error, bp_status_t code) {
  if (code == BP_OK) return {};
  return error.status(code, "device '" + device.name() + "'");
}

}  // namespace backplane
