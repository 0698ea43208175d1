// SPDX-License-Identifier: Apache-2.0
#include "engine/reference.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace backplane::cpu {

namespace {

std::atomic<bool>& setting() {
  static std::atomic<bool> only = [] {
    const char* text = std::getenv("BACKPLANE_CPU_REFERENCE");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return only;
}

}  // namespace

bool reference_only() {
  return setting().load(std::memory_order_relaxed);
}
void set_reference_only(bool only) {
  setting().store(only, std::memory_order_relaxed);
}

}  // namespace backplane::cpu
