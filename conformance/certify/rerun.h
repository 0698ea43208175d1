// SPDX-License-Identifier: Apache-2.0
// Runs a sample of a bundle's cases again.
#pragma once

#include "certify/bundle.h"
#include "run/plugin_run.h"

namespace backplane::conform {

// Compares one result of a new run with the journal. Throws Refused if the case is not in the journal or has another
// state there (before waivers and expectations), if only the journal calls a wrong result close (Result::close), or if
// a process ended abnormally although the journal records no such end.
void check_again(const Proof& proof, const Result& seen);

// Runs `count` random cases of the bundle (all if it has fewer) again with its seeds, a new sample each time. `run`
// names the plugin and how to run it. Returns what ran. Throws Refused if the plugin is not the committed one or
// reports another name, version, vendor or flags than in the journal, if a result differs from the journal (see
// check_again), or if a delivered file differs from the statement.
Rerun rerun_sample(const Proof& proof, const Parts& parts, RunOptions run, size_t count);

}  // namespace backplane::conform
