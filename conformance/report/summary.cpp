// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace backplane::conform {
namespace {

constexpr State kBad[] = {State::kFail,       State::kCrash,      State::kTimeout,
                          State::kMistrusted, State::kInfraError, State::kUnexpectedPass};

std::string fault_of(const Header& header, const std::vector<Result>& results, const RunOutcome& outcome,
                     const std::string& required) {
  if (!required.empty()) {
    for (const Level& level : outcome.levels) {
      if (level.name == required)
        return level.reached ? "" : fmt::format("{} is not reached: {}", required, level.reason);
    }
  }
  const Summary& summary = outcome.summary;
  const uint64_t ran = count_cases(results);
  if (header.shard.count == 1 && ran != header.cases) return fmt::format("{} of {} cases ran", ran, header.cases);
  if (summary.executed == 0) return "no node ran on the device under test";
  if (summary[State::kPass] == 0) return "no case passed";
  if (summary.has_failures()) {
    uint32_t bad = 0;
    for (const State state : kBad) bad += summary[state];
    return fmt::format("{} {} failed", bad, bad == 1 ? "case" : "cases");
  }
  const auto missing = std::count_if(results.begin(), results.end(),
                                     [&](const Result& one) { return is_missing(one, header.claims_profile()); });
  return missing == 0   ? ""
         : missing == 1 ? "1 case of a claimed profile is not supported"
                        : fmt::format("{} cases of a claimed profile are not supported", missing);
}

}  // namespace

bool is_failure(State state) {
  return std::find(std::begin(kBad), std::end(kBad), state) != std::end(kBad);
}

bool Summary::has_failures() const {
  return std::any_of(std::begin(kBad), std::end(kBad), [this](State state) { return (*this)[state] != 0; });
}

std::string Summary::to_json(const std::vector<std::string>& levels, const std::vector<std::string>& conditions) const {
  const Summary& self = *this;
  const nlohmann::ordered_json json = {{"passed", self[State::kPass]},
                                       {"failed", self[State::kFail]},
                                       {"crashed", self[State::kCrash]},
                                       {"timeout", self[State::kTimeout]},
                                       {"not_supported", self[State::kNotSupported]},
                                       {"waived", self[State::kWaived]},
                                       {"mistrusted", self[State::kMistrusted]},
                                       {"infra_error", self[State::kInfraError]},
                                       {"expected_fail", self[State::kExpectedFail]},
                                       {"unexpected_pass", self[State::kUnexpectedPass]},
                                       {"no_node", no_node},
                                       {"statistical", statistical},
                                       {"total", total},
                                       {"seconds", seconds},
                                       {"levels", levels},
                                       {"conditions", conditions}};
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

std::string Summary::to_text() const {
  std::string text = fmt::format("{} of {} passed", (*this)[State::kPass], total);
  if (no_node != 0) text += fmt::format(" ({} in which the device ran no node)", no_node);
  if (statistical != 0) text += fmt::format(" ({} by statistics)", statistical);
  constexpr std::pair<State, const char*> kOthers[] = {
      {State::kFail, "failed"},
      {State::kCrash, "crashed"},
      {State::kTimeout, "timed out"},
      {State::kMistrusted, "mistrusted"},
      {State::kInfraError, "errors of the harness or its data"},
      {State::kUnexpectedPass, "passed unexpectedly"},
      {State::kNotSupported, "not supported"},
      {State::kExpectedFail, "failed as expected"},
      {State::kWaived, "waived"},
  };
  for (const auto& [state, words] : kOthers) {
    if ((*this)[state] != 0) text += fmt::format(", {} {}", (*this)[state], words);
  }
  return text + fmt::format("; {:.1f} s", seconds);
}

Summary summarize(const std::vector<Result>& results, double seconds) {
  Summary summary;
  for (const Result& result : results) {
    ++summary.counts[static_cast<size_t>(result.state)];
    summary.executed += result.nodes > 0;
    summary.statistical += result.state == State::kPass && result.is_statistical;
    summary.no_node += result.state == State::kPass && result.nodes == 0;
  }
  if (summary.executed == 0) {
    summary.counts[static_cast<size_t>(State::kMistrusted)] += summary.no_node;
    summary.counts[static_cast<size_t>(State::kPass)] -= summary.no_node;
    summary.no_node = 0;
  }
  summary.total = static_cast<uint32_t>(results.size());
  summary.seconds = seconds;
  return summary;
}

std::vector<std::string> RunOutcome::reached() const {
  std::vector<std::string> names;
  for (const Level& level : levels) {
    if (level.reached) names.emplace_back(level.name);
  }
  return names;
}

RunOutcome outcome(const Header& header, const std::vector<Result>& results, const std::string& required,
                   double seconds, bool accepts_waivers) {
  RunOutcome outcome;
  outcome.summary = summarize(results, seconds);
  outcome.levels = levels(header, results, accepts_waivers);
  outcome.conditions = conditions(header, results);
  outcome.excused = static_cast<size_t>(
      std::ranges::count_if(results, [&](const Result& result) { return is_excused(result, accepts_waivers); }));
  outcome.fault = fault_of(header, results, outcome, required);
  return outcome;
}

std::vector<std::string> scope_of(const Header& header, const RunOutcome& outcome) {
  std::vector<std::string> lines = {fmt::format(
      "judged: the {} list {} of {} cases, profiles {}", header.selection, header.list.substr(0, 16), header.cases,
      header.profiles.empty() ? "none, so unsupported operators do not fail"
                              : fmt::format("{}", fmt::join(header.profiles, ", ")))};
  for (const std::string& condition : outcome.conditions) lines.push_back("but " + condition);
  if (outcome.conditions.empty()) lines.emplace_back("no filter, no waiver, no expected failure");
  return lines;
}

}  // namespace backplane::conform
