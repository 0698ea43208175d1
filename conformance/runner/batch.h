// SPDX-License-Identifier: Apache-2.0
// Many cases on several processes at a time.
#pragma once

#include <vector>

#include "runner/child.h"
#include "runner/journal.h"

namespace backplane::conform {

// Deals the cases in small batches to `jobs` workers, each with one child at a time; every result goes to the journal,
// and a counter to a terminal. Throws Fatal.
void run_batches(uint32_t jobs, const ChildSettings& settings, const std::vector<Case>& cases, Journal& journal);

}  // namespace backplane::conform
