// SPDX-License-Identifier: Apache-2.0
#include "journal/level.h"

#include <fmt/format.h>

#include <algorithm>

namespace backplane::conform {
namespace {

// A group that a level asks for, and whether being close (ONNX's bounds for whole models) is enough there.
struct Demand {
  std::string_view level, group;
  bool close_is_enough;
};
constexpr Demand kDemands[] = {
    {"L0", "abi", false},        {"L1", "coverage", false},    {"L1", "programs", false},    {"L1", "ops", true},
    {"L2", "ops", false},        {"L2", "graph", false},       {"L2", "determinism", false}, {"L3", "negative", false},
    {"L3", "robustness", false}, {"L3", "memory", false},      {"L3", "sync", false},        {"L3", "cache", false},
    {"L3", "weights", false},    {"L3", "concurrency", false}, {"L3", "lifecycle", false},
};

// What a device may offer or not.
bool is_optional(std::string_view group) {
  constexpr std::string_view kOptional[] = {"determinism", "programs", "memory", "sync", "cache", "weights"};
  return std::ranges::find(kOptional, group) != std::end(kOptional);
}

// Empty if the group is as the demand wants it.
std::string fault(const std::vector<Result>& results, const Demand& demand, bool claims_profile) {
  size_t passed = 0, unsupported = 0, bad = 0;
  const Result* first = nullptr;
  for (const Result& result : results) {
    if (group_of(result.name) != demand.group && !result.name.starts_with('(')) continue;
    const bool good = result.state == State::kPass || result.state == State::kWaived ||
                      (demand.close_is_enough && result.state == State::kFail && result.close);
    passed += good;
    unsupported += result.state == State::kNotSupported;
    if (good || (result.state == State::kNotSupported && !is_missing(result, claims_profile))) continue;
    if (bad++ == 0) first = &result;
  }
  if (bad != 0)
    return fmt::format("{}: {} cases, the first {} ({})", demand.group, bad, first->name, name_of(first->state));
  return passed == 0 && !(is_optional(demand.group) && unsupported != 0)
             ? fmt::format("{}: no case passed", demand.group)
             : "";
}

}  // namespace

std::string_view group_of(std::string_view case_name) {
  return case_name.substr(0, case_name.find('/'));
}

bool is_missing(const Result& result, bool claims_profile) {
  return claims_profile && result.state == State::kNotSupported && !is_optional(group_of(result.name));
}

std::vector<Level> levels(const std::vector<Result>& results, bool claims_profile) {
  std::vector<Level> levels = {{"L0"}, {"L1"}, {"L2"}, {"L3"}};
  std::string below;
  for (Level& level : levels) {
    level.reason = below;
    for (const Demand& demand : kDemands) {
      if (demand.level == level.name && level.reason.empty()) level.reason = fault(results, demand, claims_profile);
    }
    level.reached = level.reason.empty();
    if (!level.reached && below.empty()) below = fmt::format("{} is not reached", level.name);
  }
  return levels;
}

}  // namespace backplane::conform
