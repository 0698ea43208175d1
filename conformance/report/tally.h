// SPDX-License-Identifier: Apache-2.0
// Counts of results by group, and by operator, type and opset.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "report/run.h"

namespace backplane::conform {

struct Tally {
  std::array<uint64_t, kStateNames.size()> states = {};  // indexed by State
  uint64_t bad = 0;                                      // see Run::is_bad
  uint64_t no_node = 0;                                  // passes in which the device ran no node
  double seconds = 0;
  double worst = 0;                                      // the largest error as a fraction of its bound
  std::array<uint64_t, Histogram().size()> errors = {};  // of all output elements, in the buckets of Histogram

  uint64_t operator[](State state) const { return states[static_cast<size_t>(state)]; }
  uint64_t total() const;
  void add(const Run& run, const Result& result);
};

struct CoverageRow {
  std::string op, dtype;
  uint32_t opset = 0;  // 0 if no operator ran
  Tally tally;
};

Tally tally_all(const Run& run);
std::map<std::string, Tally> tally_groups(const Run& run);
// Counts the cases that judge results of operators, by operator, type and opset.
std::vector<CoverageRow> tally_coverage(const Run& run);

}  // namespace backplane::conform
