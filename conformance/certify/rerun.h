// SPDX-License-Identifier: Apache-2.0
// A sample of a bundle's cases, run once more.
#pragma once

#include "certify/bundle.h"
#include "run/plugin_run.h"

namespace backplane::conform {

// Runs `count` cases, a new sample each time, with the bundle's seeds; `run` has the plugin and how to run it. Returns
// how many were run. Throws Refused if results differ from those of the journal, or the delivered files from those of
// the statement.
size_t rerun_sample(const Proof& proof, const Parts& parts, RunOptions run, size_t count);

}  // namespace backplane::conform
