// SPDX-License-Identifier: Apache-2.0
// The memory of partial devices: opaque handles, which only the plugin can dereference.
#pragma once

#include "partial_backend/device.h"

namespace backplane::partial {

struct Allocation {
  Device* device;
  char* data;  // the bytes that the device accesses
  uint64_t bytes;
  char* imported = nullptr;  // the host memory that was imported, or null
  void (*release)(void* self) = nullptr;
  void* self = nullptr;
};

// The bytes of a buffer. Throws if `device` (with `peers_too`: or a peer of it, or the host) cannot access them.
char* reach(const Device& device, const bp_buffer_t& buffer, bool peers_too = false);

}  // namespace backplane::partial
