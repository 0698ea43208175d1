// SPDX-License-Identifier: Apache-2.0
#include "report/write.h"

#include "journal/digest.h"

namespace backplane::conform {
void write_reports(const Run& run, const RunComparison* comparison, const std::filesystem::path& folder) {
  std::error_code ignored;  // writing to the folder fails if it was not created
  std::filesystem::create_directories(folder, ignored);
  write_file(folder / kReports[0], summary_json(run));
  write_file(folder / kReports[1], junit_xml(run));
  write_file(folder / kReports[2], coverage_csv(run));
  write_file(folder / kReports[3], html_page(run, comparison));
}

}  // namespace backplane::conform
