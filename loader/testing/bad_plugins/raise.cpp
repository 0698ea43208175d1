// SPDX-License-Identifier: Apache-2.0
// What bad_plugin.c cannot write in C.
#include <stdexcept>

extern "C" void raise_exception() {
  throw std::runtime_error("thrown by a plugin");
}
