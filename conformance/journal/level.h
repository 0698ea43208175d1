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
  std::string reason;  // why the level is not reached
};

// The group of a case: the part of its name before the first '/'.
std::string_view group_of(std::string_view case_name);

// True if `result` is "not supported" although a claimed profile requires it.
bool is_missing(const Result& result, bool claims_profile);

struct LevelRules {
  bool claims_profile = false;
  // If true, waived failures count as passed, because the certifier signed the waivers. Waivers whose pattern `is_wide`
  // never count.
  bool accepts_waivers = false;
};

// The levels are L0 loadable, L1 functional, L2 accurate and L3 robust; each requires the levels below it. In each
// required group at least one case must have passed and none may have failed. For L1, a failure of `ops` within ONNX's
// bounds for whole models (Result::close) counts as passed. An optional group may instead have reported "not
// supported". Waived failures count as failed unless `rules` accept them; expected failures always count as failed.
// With `claims_profile`, "not supported" counts as failed in groups that are not optional, and groups without cases are
// not required. A child process that ended abnormally counts as failed in every group.
std::vector<Level> levels(const std::vector<Result>& results, const LevelRules& rules);
// How many cases have a result. A case counts once: a journal that two processes continued at the same time may have
// two results of it.
uint64_t count_cases(const std::vector<Result>& results);
// False for runs of test data of ONNX or of vendors, whose cases have the names of folders.
bool has_levels(const Header& header);
// The levels that a run reaches. It reaches none with a filter or as one of several shards, none unless every case of
// the list has a result, and none without has_levels().
std::vector<Level> levels(const Header& header, const std::vector<Result>& results, bool accepts_waivers);

// True if a waiver's pattern covers more than one operator or check: it has no '/', or a wildcard before the second
// '/'.
bool is_wide(std::string_view pattern);

// True if a waiver makes the failure count as passed. `accepts_waivers`: see LevelRules.
bool is_excused(const Result& result, bool accepts_waivers);

// The reservations under which the levels hold, one line each: a filter, a shard or cases without a result; each
// pattern of a waiver or expectation that changed results; or that the given ones changed none. Reports print these
// lines next to the levels.
std::vector<std::string> conditions(const Header& header, const std::vector<Result>& results);

}  // namespace backplane::conform
