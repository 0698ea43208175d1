// SPDX-License-Identifier: Apache-2.0
#include "report/tally.h"

#include <algorithm>
#include <tuple>

namespace backplane::conform {

uint64_t Tally::total() const {
  uint64_t sum = 0;
  for (const uint64_t count : states) sum += count;
  return sum;
}

void Tally::add(const Run& run, const Result& result) {
  ++states[static_cast<size_t>(result.state)];
  bad += run.is_bad(result);
  no_node += result.state == State::kPass && result.nodes == 0;
  seconds += result.seconds;
  worst = std::max(worst, result.worst);
  for (size_t i = 0; i < errors.size(); ++i) errors[i] += result.errors[i];
}

Tally tally_all(const Run& run) {
  Tally all;
  for (const Result& result : run.results) all.add(run, result);
  return all;
}

std::map<std::string, Tally> tally_groups(const Run& run) {
  std::map<std::string, Tally> groups;
  for (const Result& result : run.results) groups[std::string(label_of(result.name).group)].add(run, result);
  return groups;
}

std::vector<CoverageRow> tally_coverage(const Run& run) {
  std::map<std::tuple<std::string, std::string, uint32_t>, Tally> rows;
  for (const Result& result : run.results) {
    const Label label = label_of(result.name);
    if (label.op.empty() || label.dtype.empty()) continue;
    rows[{std::string(label.op), std::string(label.dtype), result.opset}].add(run, result);
  }
  std::vector<CoverageRow> coverage;
  for (const auto& [key, tally] : rows)
    coverage.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), tally});
  return coverage;
}

}  // namespace backplane::conform
