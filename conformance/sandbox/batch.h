// SPDX-License-Identifier: Apache-2.0
// Runs many cases in several processes at a time.
#pragma once

#include <functional>
#include <vector>

#include "sandbox/child.h"

namespace backplane::conform {

// Deals the cases in small batches to `jobs` workers, each with one child at a time. Passes every result to `sink`, one
// at a time, which returns the state to count; shows progress on a terminal. Throws Fatal, and what `sink` throws.
using Sink = std::function<State(Result)>;
void run_batches(uint32_t jobs, const ChildSettings& settings, const std::vector<Case>& cases, const Sink& sink);

}  // namespace backplane::conform
