// SPDX-License-Identifier: Apache-2.0
// Reports of a run: each is a text, made from the journal alone.
#pragma once

#include <filesystem>
#include <string>

#include "report/comparison.h"
#include "report/run.h"

namespace backplane::conform {

// One object: the keys of `backplane-conform --json`, and counts by group.
std::string summary_json(const Run& run);
// JUnit's XML, as continuous integration reads it: a suite for each group. What is not supported is skipped.
std::string junit_xml(const Run& run);
// operator,type,opset and a count for each state.
std::string coverage_csv(const Run& run);
// One page that loads nothing else; with `comparison` (or NULL) it also lists what changed.
std::string html_page(const Run& run, const RunComparison* comparison);

// summary.json, junit.xml, coverage.csv and report.html in `folder`. Throws std::runtime_error.
void write_reports(const Run& run, const RunComparison* comparison, const std::filesystem::path& folder);

}  // namespace backplane::conform
