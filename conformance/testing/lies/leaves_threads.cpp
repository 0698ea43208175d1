// SPDX-License-Identifier: Apache-2.0
// Starts a thread with each program and leaves it running.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t leave(const std::string&) {
  std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  return BP_OK;
}

const Lie kLie = {.compile = leave};

}  // namespace backplane::liar
