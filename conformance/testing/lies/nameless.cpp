// SPDX-License-Identifier: Apache-2.0
// Requests an extension of the host without a name.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t (*honest_create)(const bp_backend_create_t*, bp_backend_t**, bp_error_t*);

static bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  const auto get_extension = how->host->get_extension;
  if (get_extension != nullptr) get_extension(how->host, {nullptr, 0}, 1);
  return honest_create(how, out_backend, error);
}

static void falsify(bp_plugin_t& plugin) {
  honest_create = plugin.create;
  plugin.create = create;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
