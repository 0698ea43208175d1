// SPDX-License-Identifier: Apache-2.0
// The summary and outcome of a run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "journal/header.h"
#include "journal/level.h"
#include "journal/result.h"

namespace backplane::conform {

// True if a result in this state makes a run fail.
bool is_failure(State state);

struct Summary {
  std::array<uint32_t, kStateNames.size()> counts = {};  // indexed by State
  // Passes in which the device ran no node, such as models folded to constants and most abi cases.
  uint32_t no_node = 0;
  uint32_t statistical = 0;  // passes of random outputs, judged by their distribution
  uint32_t executed = 0;     // cases in which the device under test ran a node
  uint32_t total = 0;
  double seconds = 0;

  uint32_t operator[](State state) const { return counts[static_cast<size_t>(state)]; }
  bool has_failures() const;
  // Returns one JSON object with the keys of the harness's reports. It is in ASCII, because it may be printed to a
  // terminal.
  std::string to_json(const std::vector<std::string>& levels = {},
                      const std::vector<std::string>& conditions = {}) const;
  std::string to_text() const;
};

// Counts the results. If the device ran no node in any case, all passes count as mistrusted, so that a device that runs
// nothing passes nothing. `seconds` is the duration of the run.
Summary summarize(const std::vector<Result>& results, double seconds);

// The outcome of a run. It depends only on the journal.
struct RunOutcome {
  Summary summary;
  std::vector<Level> levels;
  std::vector<std::string> conditions;  // what limits the levels; printed with them
  size_t excused = 0;                   // number of failures that waivers make count as passed
  std::string fault;                    // why the run fails, in one line; empty if it succeeds

  std::vector<std::string> reached() const;  // the names of the levels reached
};
// If `required` names a level, the run fails only if this level is not reached.
RunOutcome outcome(const Header& header, const std::vector<Result>& results, const std::string& required = "",
                   double seconds = 0, bool accepts_waivers = false);

// What was judged, printed before any level: the list of cases, then each condition, or a line that says there is none.
std::vector<std::string> scope_of(const Header& header, const RunOutcome& outcome);

}  // namespace backplane::conform
