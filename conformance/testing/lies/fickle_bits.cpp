// SPDX-License-Identifier: Apache-2.0
// Declares that results are deterministic, but changes the first element in every second run.
#include <cmath>

#include "testing/wrapper.h"

namespace backplane::liar {

static void promise(bp_device_info_t& info) {
  info.flags |= BP_DEVICE_DETERMINISTIC;
}

static void falsify(Run& run) {
  static uint64_t runs = 0;
  const Bound& output = run.outputs[0];
  if (++runs % 2 == 0 && output.is_float()) output.set(0, std::nextafter(output.get(0), HUGE_VALF));
}

const Lie kLie = {.info = promise, .after = falsify};

}  // namespace backplane::liar
