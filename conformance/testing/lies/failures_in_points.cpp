// SPDX-License-Identifier: Apache-2.0
// Does not report a failed run in stream_wait if the run signals points, as if the points alone had to report it.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(bp_run_t& run) {
  if (run.stream != nullptr && run.done == nullptr && run.signal_count != 0)
    run.done = [](void*, bp_status_t, const bp_error_t*) {};
}

const Lie kLie = {.settings = falsify};

}  // namespace backplane::liar
