// SPDX-License-Identifier: Apache-2.0
// The ways to reduce a failing graph.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "minimize/candidate.h"

namespace backplane::conform {

// Tests a candidate and returns true if it is accepted. `offer` tests candidates in turn until one is accepted, and
// returns false if none is.
using Attempt = std::function<bool(Network smaller)>;
struct Step {
  std::string_view name;
  bool (*offer)(const Network& candidate, const Attempt& attempt);
};
// In the order in which they are tried. Steps that remove the most come first.
std::span<const Step> steps();

}  // namespace backplane::conform
