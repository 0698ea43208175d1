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
  std::optional<State> before, after;  // nullopt if the run does not have the case
  std::string text;                    // the reason, or the errors
};

struct PropertyChange {
  std::string label, before, after;
};

struct RunComparison {
  std::string title;  // of the run before
  std::vector<PropertyChange> properties;
  std::vector<Change> worse, better;  // passed before and not now, or bad only now; and the reverse
  std::vector<Change>
      less_accurate;  // passed in both, now with more than 1.5 times the error and over a tenth of the bound
  std::vector<Change> appeared, vanished;
  uint64_t same = 0;

  // True if no case became worse or vanished.
  bool holds() const { return worse.empty() && vanished.empty(); }
  std::string conclusion() const;
  std::string to_text() const;
  std::string to_json() const;
};

RunComparison compare_runs(const Run& before, const Run& after);

}  // namespace backplane::conform
