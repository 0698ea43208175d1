// SPDX-License-Identifier: Apache-2.0
// Does not release the memory that it took from the framework's allocator.
// Reported: memory of the framework's allocator is not released
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_device_api_t device_api;
static bp_status_t (*honest_open)(bp_backend_t*, uint32_t, const bp_device_open_t*, bp_device_t**, bp_error_t*);
static bp_device_open_t given;

static bp_status_t allocate(void*, const bp_allocate_t* what, bp_external_t* out_external) {
  const bp_status_t status = given.allocate(given.self, what, out_external);
  out_external->release = nullptr;
  return status;
}

static bp_status_t open(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how, bp_device_t** out_device,
                        bp_error_t* error) {
  given = taken(*how);
  bp_device_open_t passed = given;
  if (given.allocate != nullptr) passed.allocate = allocate;
  return honest_open(backend, index, &passed, out_device, error);
}

static void falsify(bp_plugin_t& plugin) {
  device_api = taken(*plugin.device);
  honest_open = device_api.open;
  device_api.open = open;
  plugin.device = &device_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
