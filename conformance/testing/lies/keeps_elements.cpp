// SPDX-License-Identifier: Apache-2.0
// Writes to a container without removing its old elements.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t (*honest_create)(const bp_backend_create_t*, bp_backend_t**, bp_error_t*);
static bp_host_t host;
static bp_container_api_t containers;

static bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  if (how == nullptr || how->host == nullptr || how->host->containers == nullptr)
    return honest_create(how, out_backend, error);
  host = taken(*how->host);
  containers = taken(*host.containers);
  containers.clear = [](bp_container_t*) {};
  host.containers = &containers;
  bp_backend_create_t passed = taken(*how);
  passed.host = &host;
  return honest_create(&passed, out_backend, error);
}

static void falsify(bp_plugin_t& plugin) {
  honest_create = plugin.create;
  plugin.create = create;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
