// SPDX-License-Identifier: Apache-2.0
// The part of bad_plugin.c that needs C++: it throws an exception.
#include <stdexcept>

extern "C" void raise_exception() {
  throw std::runtime_error("thrown by a plugin");
}
