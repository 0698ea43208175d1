// SPDX-License-Identifier: Apache-2.0
// Waits for two seconds in `abandon`, which must not wait for the device.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_device_api_t device_api;

static void abandon(bp_device_t*) {
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

static void falsify(bp_plugin_t& plugin) {
  device_api = taken(*plugin.device);
  device_api.abandon = abandon;
  plugin.device = &device_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
