// SPDX-License-Identifier: Apache-2.0
// A sample of a bundle's cases, run once more.
#pragma once

#include "certify/bundle.h"
#include "run/plugin_run.h"

namespace backplane::conform {

// Runs `count` cases that are drawn anew each time, with the bundle's own seeds; `run` has the plugin and how it is
// run. They must end as the journal says, and the files that the vendor delivers must be those of the statement.
// Returns how many were run. Throws Refused.
size_t rerun_sample(const Proof& proof, const Parts& parts, RunOptions run, size_t count);

}  // namespace backplane::conform
