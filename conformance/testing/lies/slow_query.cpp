// SPDX-License-Identifier: Apache-2.0
// Sleeps for 150 ms in bp_plugin_query.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.load = [] { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }};

}  // namespace backplane::liar
