// SPDX-License-Identifier: Apache-2.0
// Writes forged results to the harness and ends the process.
#include <unistd.h>

#include <string>

#include "testing/wrapper.h"

namespace backplane::liar {
namespace {

// Writes to every descriptor that may carry records, as early as a plugin can: when it is loaded.
__attribute__((constructor)) void forge() {
  std::string lines;
  while (lines.size() < size_t{1} << 16)
    lines += R"({"case":"","group":"","state":"pass","reason":"","seconds":0,"nodes":1,"statistical":false,"seed":1})"
             "\n";
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    if (write(descriptor, lines.data(), lines.size()) < 0) continue;
  }
  _exit(0);
}

}  // namespace

const Lie kLie = {};

}  // namespace backplane::liar
