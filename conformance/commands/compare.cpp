// SPDX-License-Identifier: Apache-2.0
// `backplane-conform compare`: regressions and improvements between two runs.
#include <fmt/format.h>

#include <memory>

#include "cli/printable.h"
#include "commands/verb.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

struct Options {
  std::string before, run;
  bool json = false;
};

int compare(const Options& options) {
  const Run before = read_run(options.before), after = read_run(options.run);
  const RunComparison comparison = compare_runs(before, after);
  fmt::print("{}{}", options.json ? comparison.to_json() : cli::printable_lines(comparison.to_text()),
             options.json ? "\n" : "");
  return comparison.holds() ? 0 : 1;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.add_option("BEFORE", options->before, "A journal, or the folder that --out wrote")
      .shown_as("PATH")
      .required();
  command.add_option("AFTER", options->run, "The run to compare with BEFORE").shown_as("PATH").required();
  command.add_flag("--json", options->json, "Print JSON on standard output");
  return [options] { return compare(*options); };
}

}  // namespace

extern const Verb compare_verb = {"compare", "compares a run with an earlier one", declare};

}  // namespace backplane::conform
