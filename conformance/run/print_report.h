// SPDX-License-Identifier: Apache-2.0
// Prints the report of a run.
#pragma once

#include <vector>

#include "journal/header.h"
#include "journal/result.h"
#include "report/summary.h"

namespace backplane::conform {

// Prints failures with commands to rerun them and the summary; for a run over the C ABI also its scope, counts by group
// and the levels. With `json`, prints only the summary, as JSON. Prints why the run fails to standard error. Returns
// the exit status.
int print_report(const Header& header, const std::vector<Result>& results, const RunOutcome& outcome, bool json);

}  // namespace backplane::conform
