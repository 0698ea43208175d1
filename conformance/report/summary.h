// SPDX-License-Identifier: Apache-2.0
// The summary of a run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "journal/header.h"
#include "journal/level.h"
#include "journal/result.h"

namespace backplane::conform {

// Whether the state makes a run fail.
bool is_failure(State state);

struct Summary {
  std::array<uint32_t, kStateNames.size()> counts = {};  // by State
  uint32_t no_node = 0;                                  // passes of models that were folded away completely
  uint32_t statistical = 0;                              // passes of random draws, judged by their distribution
  uint32_t executed = 0;                                 // cases in which the device under test ran a node
  uint32_t total = 0;
  double seconds = 0;

  uint32_t operator[](State state) const { return counts[static_cast<size_t>(state)]; }
  bool has_failures() const;
  // One JSON object with the keys of the harness's reports, in ASCII, since it may go to a terminal.
  std::string to_json(const std::vector<std::string>& levels = {},
                      const std::vector<std::string>& conditions = {}) const;
  std::string to_text() const;
};

// Passes of models that were folded away completely become mistrusted if no case ran a node: a device that runs nothing
// passes nothing. `seconds` is the run's duration.
Summary summarise(const std::vector<Result>& results, double seconds);

// A run's outcome, which follows from its journal alone.
struct RunOutcome {
  Summary summary;
  std::vector<Level> levels;
  std::vector<std::string> conditions;  // limit the levels, and are printed with them
  std::string fault;                    // why the run fails, in one line; empty if it does not

  std::vector<std::string> reached() const;  // the names of the levels
};
// If `required`, a level's name, is not empty, the only fault is that this level is not reached.
RunOutcome outcome(const Header& header, const std::vector<Result>& results, const std::string& required = "",
                   double seconds = 0, bool accepts_waivers = false);

// The scope of a run, printed before any level: the list, and each condition or a line that there is none.
std::vector<std::string> scope_of(const Header& header, const RunOutcome& outcome);

}  // namespace backplane::conform
