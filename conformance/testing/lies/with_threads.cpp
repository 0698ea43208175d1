// SPDX-License-Identifier: Apache-2.0
// Returns wrong results only while another run is in progress in the process.
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.together > 1 && run.outputs[0].is_float()) run.outputs[0].set(0, run.outputs[0].get(0) + 1);
}

static void linger(Run&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

const Lie kLie = {.before = linger, .after = falsify};

}  // namespace backplane::liar
