// SPDX-License-Identifier: Apache-2.0
// The memory of partial devices: opaque handles that only the plugin can dereference.
#pragma once

#include "partial_backend/device.h"

namespace backplane::partial {

struct Allocation {
  Device* device;
  char* data;  // the bytes that the device accesses
  uint64_t bytes;
  char* imported = nullptr;  // the imported host memory, or null
  void (*release)(void* self) = nullptr;
  void* self = nullptr;
};

// Returns a pointer to a buffer's bytes. Throws if `device` cannot access them. With `peers_too`, it is enough that a
// peer of the device or the host can access them.
char* reach(const Device& device, const bp_buffer_t& buffer, bool peers_too = false);

}  // namespace backplane::partial
