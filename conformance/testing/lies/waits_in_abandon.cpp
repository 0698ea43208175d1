// SPDX-License-Identifier: Apache-2.0
// Waits for a device that does not return.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_instance_api_t instance_api;

static void abandon(bp_instance_t*) {
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

static void falsify(bp_plugin_t& plugin) {
  instance_api = *plugin.instance;
  instance_api.abandon = abandon;
  plugin.instance = &instance_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
