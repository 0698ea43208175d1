// SPDX-License-Identifier: Apache-2.0
// Reports of a run. Each depends only on the journal.
#pragma once

#include <filesystem>
#include <string>

#include "report/comparison.h"
#include "report/run.h"

namespace backplane::conform {

// One JSON object: the keys of `backplane-conform --json` except no_node and statistical, and the keys fault, title,
// facts (Run::properties) and groups (counts by group).
std::string summary_json(const Run& run);
// JUnit's XML for continuous integration, with one suite for each group. Cases that neither passed nor failed are
// marked as skipped.
std::string junit_xml(const Run& run);
// One row for each operator, type and opset, with a count for each state, the total, and the largest error as a
// fraction of its bound.
std::string coverage_csv(const Run& run);
// One self-contained page. If `comparison` is not NULL, the page also lists what changed.
std::string html_page(const Run& run, const RunComparison* comparison);

inline constexpr const char* kReports[] = {"summary.json", "junit.xml", "coverage.csv", "report.html"};
// Writes kReports to `folder`. Throws std::runtime_error.
void write_reports(const Run& run, const RunComparison* comparison, const std::filesystem::path& folder);

}  // namespace backplane::conform
