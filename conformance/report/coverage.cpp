// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/tally.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

// Quotes a field by RFC 4180, because names of cases in a journal may contain any character.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string coverage_csv(const Run& run) {
  std::string csv = "operator,type,opset";
  for (const std::string_view state : kStateNames) csv += fmt::format(",{}", state);
  csv += ",total,largest_error_over_bound\n";
  for (const CoverageRow& row : tally_coverage(run)) {
    csv += fmt::format("{},{},{}", field(row.op), field(row.dtype), row.opset == 0 ? "" : std::to_string(row.opset));
    for (const uint64_t count : row.tally.states) csv += fmt::format(",{}", count);
    csv += fmt::format(",{},{:.4g}\n", row.tally.total(), row.tally.worst);
  }
  return csv;
}

}  // namespace backplane::conform
