// SPDX-License-Identifier: Apache-2.0
// Declares that it flushes subnormals, but only in processes that run cases.
#include <fstream>
#include <iterator>

#include "testing/wrapper.h"

namespace backplane::liar {

static void declare(bp_device_info_t& info) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string arguments{std::istreambuf_iterator<char>(file), {}};
  if (arguments.find("(identity)") == std::string::npos) info.flags |= BP_DEVICE_FLUSHES_SUBNORMALS;
}

const Lie kLie = {.info = declare};

}  // namespace backplane::liar
