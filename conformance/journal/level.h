// SPDX-License-Identifier: Apache-2.0
// Which levels a set of results reaches.
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

// The group of a case: the part of its name before the first '/'.
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
// supported is a failure, and a group without a case in the profiles is not required. The `onnx` group is
// run by a separate command: L2 and L3 do not require it here.
std::vector<Level> levels(const std::vector<Result>& results, const LevelRules& rules);
// The same of a run, which reaches no level unless every case of the list was run.
std::vector<Level> levels(const Header& header, const std::vector<Result>& results, bool accepts_waivers);

// Whether a waiver's pattern names no operator or check: it has a wildcard in the first two parts of a case's name.
bool is_wide(std::string_view pattern);

// Conditions of the levels, a line each: a filter, cases left out, each waiver, each expected failure. They are
// printed with every level.
std::vector<std::string> conditions(const Header& header, const std::vector<Result>& results);

}  // namespace backplane::conform
