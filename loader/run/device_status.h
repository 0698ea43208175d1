// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/keep.h"
#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// Converts the result of a plugin's function into a Status. Every run of a bound exec calls this, so success allocates
// nothing.
inline Status device_status(const Device& device, const PluginError& error, bp_status_t code) {
  if (code == BP_OK) return {};
  return error.status(code, "device '" + device.name() + "'");
}

// Keeps an object of a plugin whose device was abandoned. No function of that plugin may be called with it, so it
// cannot be destroyed. It stays reachable for leak checkers.
inline void keep_handle(const void* handle) noexcept {
  keep_value_for_good(handle);
}

}  // namespace backplane
