// SPDX-License-Identifier: Apache-2.0
// The parts of bad_plugin.c that need C++.
#include <stdexcept>

extern "C" void raise_exception() {
  throw std::runtime_error("thrown by a plugin");
}
