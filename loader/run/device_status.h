// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/keep.h"
#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// Returns the status of a call into a device's plugin. Success costs nothing, since each bound run comes through here.
inline Status device_status(const Device& device, const PluginError& error, bp_status_t code) {
  if (code == BP_OK) return {};
  return error.status(code, "device '" + device.name() + "'");
}

// No function of a plugin may be called with an object of a device that was given up. Such an object is kept, where
// leak checkers find it.
inline void keep_handle(const void* handle) {
  keep_for_good({handle, [](const void*) {}});
}

}  // namespace backplane
