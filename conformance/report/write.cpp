// SPDX-License-Identifier: Apache-2.0
#include "report/write.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace backplane::conform {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(fmt::format("'{}' cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace

void write_reports(const Run& run, const RunComparison* comparison, const std::filesystem::path& folder) {
  std::error_code ignored;  // writing to the folder fails if it was not created
  std::filesystem::create_directories(folder, ignored);
  write(folder / "summary.json", summary_json(run));
  write(folder / "junit.xml", junit_xml(run));
  write(folder / "coverage.csv", coverage_csv(run));
  write(folder / "report.html", html_page(run, comparison));
}

}  // namespace backplane::conform
