// SPDX-License-Identifier: Apache-2.0
// The levels that a set of results reaches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// L0 loadable, L1 functional, L2 accurate, L3 robust; each needs the ones below. A group counts if at least one of its
// cases passed and none failed. With `claims_profile` what is not supported is a failure. The `onnx` group of
// the page is run by a command of its own: L2 and L3 here are reached without it.
std::vector<Level> levels(const std::vector<Result>& results, bool claims_profile);

}  // namespace backplane::conform
