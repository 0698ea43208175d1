// SPDX-License-Identifier: Apache-2.0
#include "host/variable.h"

#include <sys/auxv.h>

#include <atomic>
#include <cstdlib>

namespace backplane {
namespace {

std::atomic<bool>& state() {
  static std::atomic<bool> elevated{getauxval(AT_SECURE) != 0};
  return elevated;
}

}  // namespace

bool elevated() {
  return state();
}

const char* variable(const char* name) {
  return elevated() ? nullptr : secure_getenv(name);
}

void pretend_elevated(bool value) {
  state() = value;
}

}  // namespace backplane
