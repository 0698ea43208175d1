// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/overwrite.h"
#include "commands/verb.h"
#include "journal/journal.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

struct Options {
  std::string run, before, out;
  bool json = false;
};

int report(const Options& options) {
  const Run run = read_run(options.run);
  std::optional<RunComparison> comparison;
  if (!options.before.empty()) comparison = compare_runs(read_run(options.before), run);
  const std::filesystem::path journal = journal_file(options.run);
  const std::filesystem::path folder = options.out.empty() ? journal.parent_path() : std::filesystem::path(options.out);
  for (const char* name : kReports) cli::keep_inputs("report", folder / name, {journal, journal_file(options.before)});
  write_reports(run, comparison ? &*comparison : nullptr, folder);
  if (options.json)
    fmt::print("{}", summary_json(run));
  else
    fmt::print("{}: summary.json, junit.xml, coverage.csv, report.html\n", folder.empty() ? "." : folder.string());
  return 0;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.add_option("RUN", options->run, "A journal, or the folder that --out wrote").shown_as("PATH").required();
  command.add_option("--compare", options->before, "An earlier run: the page lists the changes since then")
      .shown_as("PATH");
  command.add_option("--out", options->out, "Folder for the reports; default: next to the journal").shown_as("FOLDER");
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  return [options] { return report(*options); };
}

}  // namespace

extern const Verb report_verb = {"report", "writes summary.json, junit.xml, coverage.csv and an HTML page of a run",
                                 declare};

}  // namespace backplane::conform
