// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <vector>

#include "cli/xml.h"
#include "report/summary.h"
#include "report/tally.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

// JUnit distinguishes only two kinds of bad cases: "failure" for a wrong result and "error" for a missing one.
const char* element_of(State state) {
  return state == State::kCrash || state == State::kTimeout || state == State::kInfraError ? "error" : "failure";
}

std::string case_xml(const Run& run, const Result& result) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"",
                                cli::xml(label_of(result.name).group), cli::xml(result.name), result.seconds);
  if (result.state == State::kPass) return out + "/>\n";
  out += ">\n";
  if (run.is_bad(result)) {
    const char* element = element_of(result.state);
    out += fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", element, name_of(result.state),
                       cli::xml(result.reason), cli::xml(result.repro));
  } else {
    out += fmt::format("      <skipped message=\"{}: {}\"/>\n", name_of(result.state), cli::xml(result.reason));
  }
  return out + "    </testcase>\n";
}

// Formats the attributes tests, failures, errors, skipped and time.
std::string counts(const Run& run, const std::vector<const Result*>& results) {
  uint64_t failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  for (const Result* result : results) {
    seconds += result->seconds;
    if (result->state == State::kPass) continue;
    if (!run.is_bad(*result))
      ++skipped;
    else
      ++(element_of(result->state) == std::string_view("error") ? errors : failures);
  }
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"", results.size(),
                     failures, errors, skipped, seconds);
}

}  // namespace

std::string junit_xml(const Run& run) {
  std::map<std::string_view, std::vector<const Result*>> suites;
  std::vector<const Result*> all;
  for (const Result& result : run.results) {
    suites[label_of(result.name).group].push_back(&result);
    all.push_back(&result);
  }
  std::string out = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n",
                                cli::xml(run.title()), counts(run, all));
  if (run.header.selection == "quick" || run.header.selection == "full") {
    const RunOutcome outcome = conform::outcome(run.header, run.results);
    std::string scope;
    for (const std::string& line : scope_of(run.header, outcome)) scope += (scope.empty() ? "" : "; ") + line;
    out += fmt::format("  <properties>\n    <property name=\"levels\" value=\"{}\"/>\n",
                       cli::xml(fmt::format("{}", fmt::join(outcome.reached(), ", "))));
    out += fmt::format("    <property name=\"scope\" value=\"{}\"/>\n  </properties>\n", cli::xml(scope));
  }
  for (const auto& [group, results] : suites) {
    out += fmt::format("  <testsuite name=\"{}\" {}>\n", cli::xml(group), counts(run, results));
    for (const Result* result : results) out += case_xml(run, *result);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace backplane::conform
