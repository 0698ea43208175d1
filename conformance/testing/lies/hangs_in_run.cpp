// SPDX-License-Identifier: Apache-2.0
// Does not return from Softmax.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

static void hang(Run& run) {
  while (run.op == "Softmax") std::this_thread::sleep_for(std::chrono::seconds(1));
}

const Lie kLie = {.before = hang};

}  // namespace backplane::liar
