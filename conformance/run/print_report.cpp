// SPDX-License-Identifier: Apache-2.0
#include "run/print_report.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "cli/printable.h"
#include "journal/level.h"

namespace backplane::conform {
namespace {

// Prints one entry for all cases of a group that have the same state and reason.
void print_failures(const std::vector<Result>& results) {
  std::map<std::tuple<std::string_view, State, std::string_view>, std::vector<const Result*>> alike;
  for (const Result& result : results) {
    if (result.state != State::kPass && result.state != State::kNotSupported)
      alike[{label_of(result.name).group, result.state, result.reason}].push_back(&result);
  }
  for (const auto& [key, failures] : alike) {
    const Result& first = *failures.front();
    fmt::print("{:15} {}: {}\n", name_of(first.state), cli::printable(first.name), cli::printable(first.reason));
    if (!first.repro.empty()) fmt::print("{:15} {}\n", "", cli::printable(first.repro));
    if (failures.size() > 1)
      fmt::print("{:15} and {} more of this group with the same reason\n", "", failures.size() - 1);
  }
}

void print_groups(const std::vector<Result>& results) {
  std::map<std::string_view, std::map<State, uint32_t>> groups;
  for (const Result& result : results) ++groups[label_of(result.name).group][result.state];
  for (const auto& [group, states] : groups) {
    std::string line;
    for (const auto& [state, count] : states) line += fmt::format("  {} {}", count, name_of(state));
    fmt::print("{:15}{}\n", cli::printable(group), line);
  }
}

}  // namespace

int print_report(const Header& header, const std::vector<Result>& results, const RunOutcome& outcome, bool json) {
  if (json) {
    fmt::print("{}\n", outcome.summary.to_json(outcome.reached(), outcome.conditions));
  } else {
    const bool has_groups = has_levels(header);  // the cases of other runs belong to no group
    if (has_groups) {
      for (const std::string& line : scope_of(header, outcome)) fmt::print("{}\n", cli::printable(line));
    }
    print_failures(results);
    if (has_groups) print_groups(results);
    fmt::print("{}\n", outcome.summary.to_text());
    fmt::print("{} cases, list {}, seed {}\n", header.cases, cli::printable(header.list.substr(0, 16)),
               header.seeds.of_cases());
    for (const Level& level : has_groups ? outcome.levels : std::vector<Level>())
      fmt::print("{} {}\n", level.name, level.reached ? "reached" : "not reached: " + cli::printable(level.reason));
  }
  if (!outcome.fault.empty()) fmt::print(stderr, "backplane-conform: {}\n", cli::printable(outcome.fault));
  return outcome.fault.empty() ? 0 : 1;
}

}  // namespace backplane::conform
