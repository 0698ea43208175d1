// SPDX-License-Identifier: Apache-2.0
// Starts a thread in bp_plugin_query.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.load = [] { std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach(); }};

}  // namespace backplane::liar
