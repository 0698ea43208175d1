// SPDX-License-Identifier: Apache-2.0
// Writes forged results to the harness while it runs Softmax.
#include <unistd.h>

#include <string>

#include "testing/wrapper.h"

namespace backplane::liar {
namespace {

void before(Run& run) {
  if (run.op != "Softmax") return;
  const std::string line =
      R"({"case":"","group":"","state":"pass","reason":"","seconds":0,"nodes":1,"statistical":false,"seed":1})"
      "\n";
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    if (write(descriptor, line.data(), line.size()) < 0) continue;
  }
}

}  // namespace

const Lie kLie = {.before = before, .skip = true};

}  // namespace backplane::liar
