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

// Whether `result` is "not supported" although a claimed profile requires it.
bool is_missing(const Result& result, bool claims_profile);

struct LevelRules {
  bool claims_profile = false;
  // Waived failures count as passes: the certifier signed the waivers. Those of a pattern that `is_wide` never do.
  bool accepts_waivers = false;
};

// L0 loadable, L1 functional, L2 accurate, L3 robust; each requires those below. Of each required group a case must
// have passed (of an optional one, at least reported "not supported") and none failed; waived failures count as failed
// unless `rules` accept them, expected ones always. With `claims_profile`, "not supported" fails in groups that are not
// optional, and groups without cases are not required. The `onnx` group has a command of its own and no level here.
std::vector<Level> levels(const std::vector<Result>& results, const LevelRules& rules);
// The levels of a run, which reaches none unless every case of the list was run.
std::vector<Level> levels(const Header& header, const std::vector<Result>& results, bool accepts_waivers);

// Whether a waiver's pattern covers more than one operator or check: no '/', or a wildcard before the second '/'.
bool is_wide(std::string_view pattern);

// What qualifies the levels, one per line: cases left out, and each waiver and expected failure that applied. Reports
// print these lines with the levels.
std::vector<std::string> conditions(const Header& header, const std::vector<Result>& results);

}  // namespace backplane::conform
