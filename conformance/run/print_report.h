// SPDX-License-Identifier: Apache-2.0
// The report of a run on standard output.
#pragma once

#include <vector>

#include "journal/header.h"
#include "journal/result.h"
#include "report/summary.h"

namespace backplane::conform {

// Prints the failures with commands to rerun them, groups, summary and levels; with `json`, only the summary as JSON.
// Returns the exit status.
int print_report(const Header& header, const std::vector<Result>& results, const RunOutcome& outcome, bool json);

}  // namespace backplane::conform
