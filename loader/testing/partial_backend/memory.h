// SPDX-License-Identifier: Apache-2.0
// The memory of partial devices: handles that no one but the plugin can look into.
#pragma once

#include "partial_backend/device.h"

namespace backplane::partial {

struct Allocation {
  Device* device;
  char* data;  // what the device sees
  uint64_t bytes;
  char* imported = nullptr;  // the host memory that it is an import of
  void (*release)(void* self) = nullptr;
  void* self = nullptr;
};

// Where the bytes of a buffer lie that `device` (or, for copies, a peer of it) reaches. Throws where it does not.
char* reach(const Device& device, const bp_buffer_t& buffer, bool peers_too = false);

}  // namespace backplane::partial
