// SPDX-License-Identifier: Apache-2.0
// Runs many cases in several processes in parallel.
#pragma once

#include <functional>
#include <vector>

#include "sandbox/child.h"

namespace backplane::conform {

// Distributes the cases in small batches among `jobs` workers, each of which has one child process at a time. Passes
// every result to `sink`, which is never called concurrently. `sink` returns the result's final state (a failure may be
// waived, for example), which the progress line counts. The results of a batch are passed on when all its cases have
// run: a crash may depend on the cases before it, so a run that is killed and resumed must repeat unfinished batches as
// a whole. Throws Fatal and any exception that `sink` throws.
using Sink = std::function<State(Result)>;
void run_batches(uint32_t jobs, const ChildSettings& settings, const std::vector<Case>& cases, const Sink& sink);

}  // namespace backplane::conform
