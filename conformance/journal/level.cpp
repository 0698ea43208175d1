// SPDX-License-Identifier: Apache-2.0
#include "journal/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace backplane::conform {
namespace {

// A group that a level requires. With `close_is_enough`, a result within ONNX's bounds for whole models counts as
// passed.
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

// Returns true if the group tests optional capabilities of a device.
bool is_optional(std::string_view group) {
  constexpr std::string_view kOptional[] = {"determinism", "programs", "memory", "sync", "cache", "weights"};
  return std::ranges::find(kOptional, group) != std::end(kOptional);
}

// Why the group does not meet the requirement; empty if it does.
std::string fault(const std::vector<Result>& results, const Demand& demand, const LevelRules& rules) {
  size_t all = 0, passed = 0, unsupported = 0, bad = 0;
  const Result* first = nullptr;
  for (const Result& result : results) {
    if (group_of(result.name) != demand.group && !result.name.starts_with('(')) continue;
    const bool good = result.state == State::kPass || is_excused(result, rules.accepts_waivers) ||
                      (demand.close_is_enough && result.state == State::kFail && result.close);
    all += is_of_list(result);
    passed += good;
    unsupported += result.state == State::kNotSupported;
    if (good || (result.state == State::kNotSupported && !is_missing(result, rules.claims_profile))) continue;
    if (bad++ == 0) first = &result;
  }
  if (bad != 0)
    return fmt::format("{}: {} {} did not pass, the first is {} ({})", demand.group, bad, bad == 1 ? "case" : "cases",
                       first->name, name_of(first->state));
  if (all == 0 && rules.claims_profile) return "";
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

std::vector<Level> levels(const std::vector<Result>& results, const LevelRules& rules) {
  std::vector<Level> levels = {{"L0"}, {"L1"}, {"L2"}, {"L3"}};
  std::string below;
  for (Level& level : levels) {
    level.reason = below;
    for (const Demand& demand : kDemands) {
      if (demand.level == level.name && level.reason.empty()) level.reason = fault(results, demand, rules);
    }
    level.reached = level.reason.empty();
    if (!level.reached && below.empty()) below = fmt::format("{} is not reached", level.name);
  }
  return levels;
}

namespace {

// Why the results do not cover the whole list of cases; empty if they do.
std::string gap_of(const Header& header, const std::vector<Result>& results) {
  if (!header.filter.empty()) return fmt::format("the filter '{}' leaves cases out", header.filter);
  if (header.shard.count != 1)
    return fmt::format("this is only shard {} of {}", header.shard.index, header.shard.count);
  const uint64_t ran = count_cases(results);
  return ran == header.cases ? "" : fmt::format("{} of {} cases ran", ran, header.cases);
}

}  // namespace

uint64_t count_cases(const std::vector<Result>& results) {
  std::set<std::string_view> names;
  for (const Result& result : results) {
    if (is_of_list(result)) names.insert(result.name);
  }
  return names.size();
}

bool has_levels(const Header& header) {
  return header.selection != "onnx" && header.selection != "vendor";
}

std::vector<Level> levels(const Header& header, const std::vector<Result>& results, bool accepts_waivers) {
  std::vector<Level> found =
      levels(results, {.claims_profile = header.claims_profile(), .accepts_waivers = accepts_waivers});
  const std::string gap = has_levels(header) ? gap_of(header, results) : "a run of test data has no levels";
  for (Level& level : found) {
    if (gap.empty()) break;
    level.reached = false;
    level.reason = gap;
  }
  return found;
}

bool is_wide(std::string_view pattern) {
  size_t end = pattern.find('/');
  if (end != std::string_view::npos) end = pattern.find('/', end + 1);
  return pattern.find('/') == std::string_view::npos ||
         pattern.substr(0, end).find_first_of("*?[\\") != std::string_view::npos;
}

bool is_excused(const Result& result, bool accepts_waivers) {
  return result.state == State::kWaived && accepts_waivers && !is_wide(result.exception);
}

std::vector<std::string> conditions(const Header& header, const std::vector<Result>& results) {
  std::vector<std::string> lines;
  if (const std::string gap = gap_of(header, results); !gap.empty()) lines.push_back(gap + ": no level is reached");
  std::map<std::pair<State, std::string_view>, size_t> exceptions;
  for (const Result& result : results) {
    if (result.was) ++exceptions[{result.state, result.exception}];
  }
  for (const auto& [what, count] : exceptions) {
    const auto& [state, pattern] = what;
    std::string line =
        fmt::format("{} {} declared as '{}'", count, count == 1 ? "failure is" : "failures are", pattern);
    if (state == State::kWaived)
      line = fmt::format("{} {} waived by '{}'{}", count, count == 1 ? "failure is" : "failures are", pattern,
                         is_wide(pattern) ? ", which is too wide to reach a level" : "");
    if (state == State::kUnexpectedPass)
      line = fmt::format("{} {} though declared to fail as '{}'", count, count == 1 ? "case passed" : "cases passed",
                         pattern);
    lines.push_back(std::move(line));
  }
  if (exceptions.empty() && !header.waivers.empty())
    lines.emplace_back("waivers or expected failures were given, which no result needed");
  return lines;
}

}  // namespace backplane::conform
