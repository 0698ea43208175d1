// SPDX-License-Identifier: Apache-2.0
// Prints the report of a run on standard output.
#pragma once

#include <vector>

#include "journal/header.h"
#include "journal/result.h"
#include "report/summary.h"

namespace backplane::conform {

// Prints failures with commands to rerun them, counts by group, the summary and the levels. With `json`, prints only
// the summary, as JSON. Returns the exit status.
int print_report(const Header& header, const std::vector<Result>& results, const RunOutcome& outcome, bool json);

}  // namespace backplane::conform
