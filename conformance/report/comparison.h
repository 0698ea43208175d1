// SPDX-License-Identifier: Apache-2.0
// Compares two runs of the same cases, for regressions and improvements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run.h"

namespace backplane::conform {

struct Change {
  std::string name;                    // name of the case
  std::optional<State> before, after;  // nullopt if the case is not in the run
  std::string text;                    // the reason of the failure, or both errors
};

struct PropertyChange {
  std::string label, before, after;
};

struct RunComparison {
  std::string title;  // title of the earlier run
  std::vector<PropertyChange> properties;
  std::vector<Change> worse, better;  // `worse`: passed before and not now, or bad only now; `better`: the reverse
  // Passed in both; the error is now more than a tenth of the bound and grew by more than 50%.
  std::vector<Change> less_accurate;
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
