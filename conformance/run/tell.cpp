// SPDX-License-Identifier: Apache-2.0
// What a run says to people and to scripts.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "cli/printable.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

// One line a failure, and one for all of a group that have the same reason.
void tell_failures(const std::vector<Result>& results) {
  std::map<std::tuple<std::string_view, State, std::string_view>, std::vector<const Result*>> alike;
  for (const Result& result : results) {
    if (result.state != State::kPass && result.state != State::kNotSupported)
      alike[{label_of(result.name).group, result.state, result.reason}].push_back(&result);
  }
  for (const auto& [key, failures] : alike) {
    const Result& first = *failures.front();
    fmt::print("{:15} {}: {}\n", name_of(first.state), cli::printable(first.name), cli::printable(first.reason));
    if (!first.repro.empty()) fmt::print("{:15} {}\n", "", cli::printable(first.repro));
    if (failures.size() > 1) fmt::print("{:15} and {} more of this group alike\n", "", failures.size() - 1);
  }
}

void tell_groups(const std::vector<Result>& results) {
  std::map<std::string_view, std::map<State, uint32_t>> groups;
  for (const Result& result : results) ++groups[label_of(result.name).group][result.state];
  for (const auto& [group, states] : groups) {
    std::string line;
    for (const auto& [state, count] : states) line += fmt::format("  {} {}", count, name_of(state));
    fmt::print("{:15}{}\n", group, line);
  }
}

}  // namespace

int tell(const Header& header, const std::vector<Result>& results, const Verdict& verdict, bool json) {
  if (json) {
    fmt::print("{}\n", verdict.summary.to_json(verdict.reached(), verdict.conditions));
  } else {
    const bool has_groups = header.selection != "onnx";  // and levels
    if (has_groups) {
      for (const std::string& line : scope_of(header, verdict)) fmt::print("{}\n", cli::printable(line));
    }
    tell_failures(results);
    if (has_groups) tell_groups(results);
    fmt::print("{}\n", verdict.summary.to_text());
    fmt::print("{} cases, list {}, seed {}\n", header.cases, header.list.substr(0, 16), header.seeds.of_cases());
    for (const Level& level : has_groups ? verdict.levels : std::vector<Level>())
      fmt::print("{} {}\n", level.name, level.reached ? "reached" : "not reached: " + level.reason);
  }
  if (!verdict.fault.empty()) fmt::print(stderr, "backplane-conform: {}\n", verdict.fault);
  return verdict.fault.empty() ? 0 : 1;
}

}  // namespace backplane::conform
