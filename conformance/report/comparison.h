// SPDX-License-Identifier: Apache-2.0
// Compares two runs of the same cases: regressions and improvements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run.h"

namespace backplane::conform {

struct Change {
  std::string name;                    // of the case
  std::optional<State> before, after;  // nothing where the run does not have the case
  std::string text;                    // the reason, or the errors
};

struct PropertyChange {
  std::string label, before, after;
};

struct RunComparison {
  std::string title;  // of the run before
  std::vector<PropertyChange> properties;
  std::vector<Change> worse, better;  // right before and not now, and the other way round
  std::vector<Change>
      less_accurate;  // right in both, with half as much error again or more, and over a tenth of the bound
  std::vector<Change> appeared, vanished;
  uint64_t same = 0;

  // True if no right result has become wrong or is missing.
  bool holds() const { return worse.empty() && vanished.empty(); }
  std::string conclusion() const;
  std::string to_text() const;
  std::string to_json() const;
};

RunComparison compare_runs(const Run& before, const Run& after);

}  // namespace backplane::conform
