// SPDX-License-Identifier: Apache-2.0
// The levels that a set of results reaches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/header.h"
#include "journal/result.h"

namespace backplane::conform {

struct Level {
  std::string_view name;  // "L0"
  bool reached = false;
  std::string reason;  // why not
};

// The group of a case: what stands before the first '/'.
std::string_view group_of(std::string_view case_name);

// Whether a claimed profile promises what is not supported here.
bool is_missing(const Result& result, bool claims_profile);

struct LevelRules {
  bool claims_profile = false;
  // Waived failures count as passes: the certifier signed the waivers. Those by a waiver that `is_wide` never do.
  bool accepts_waivers = false;
};

// L0 loadable, L1 functional, L2 accurate, L3 robust; each needs the ones below. A group counts if at least one of its
// cases passed and none failed; a failure that is waived or expected is one. With `claims_profile` what is not
// supported is a failure, and a group of which the profiles have no case is not asked for. The `onnx` group of the page
// is run by a command of its own: L2 and L3 here are reached without it.
std::vector<Level> levels(const std::vector<Result>& results, const LevelRules& rules);
// The same of a run, which reaches no level unless every case of the list was run.
std::vector<Level> levels(const Header& header, const std::vector<Result>& results, bool accepts_waivers);

// Whether a waiver's pattern names no operator or check: it has a wildcard in the first two parts of a case's name.
bool is_wide(std::string_view pattern);

// What else there is to know of the levels, a line each: a filter, cases left out, each waiver, each expected failure.
// It is printed wherever a level is.
std::vector<std::string> conditions(const Header& header, const std::vector<Result>& results);

}  // namespace backplane::conform
