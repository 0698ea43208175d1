// SPDX-License-Identifier: Apache-2.0
// `backplane-conform repro CASE`: runs one case again.
#include <fmt/format.h>

#include "cases/model.h"
#include "cli/overwrite.h"
#include "cli/printable.h"
#include "commands/verb.h"
#include "minimize/case.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

// A list with the case of this name, or an empty list.
std::vector<Case> find(const std::string& name, const CaseOptions& case_options) {
  std::vector<Case> cases = plan(case_options).cases;
  std::erase_if(cases, [&](const Case& one) { return one.name != name; });
  return cases;
}

std::function<int()> declare(cli::Command command) {
  struct Options {
    RunOptions run;
    CaseOptions case_options;
    std::string name, minimize;
  };
  const auto options = std::make_shared<Options>();
  command.add_option("CASE", options->name, "The case's full name").shown_as("NAME").required();
  declare_target(command, options->run);
  command.add_option("--seed", options->run.seeds.seed, "Seed of the case's inputs");
  command.add_flag("--full", options->case_options.full, "Run the longer loops of a full run");
  command.add_option("--minimize", options->minimize, "Folder for a minimized failing graph, as ONNX test data")
      .shown_as("FOLDER");
  declare_models(command, options->case_options);
  declare_execution(command, options->run);
  declare_exceptions(command, options->run);
  return [options] {
    Plan one{.cases = find(options->name, options->case_options), .total = 1};
    if (one.cases.empty()) {  // the case may exist only in full runs
      options->case_options.full = true;
      one.cases = find(options->name, options->case_options);
    }
    if (one.cases.empty())
      throw Usage(fmt::format("'{}' is not a case: `backplane-conform list --full` prints all", options->name));
    if (!options->minimize.empty()) {
      const RunOptions& run = options->run;
      check_plugin(run);
      for (const ModelFile& model : find_models(options->case_options.models))
        cli::keep_inputs("--minimize", std::filesystem::path(options->minimize) / "model.onnx", {model.path});
      const std::chrono::milliseconds deadline(static_cast<int64_t>(run.timeout * 1000));
      return minimize_and_report(options->name, {run.plugin, run.device, run.seeds.of_cases(), deadline},
                                 options->minimize);
    }
    Journal journal = run_plugin(options->run, options->case_options, one, exceptions_of(options->run));
    bool is_good = !journal.results().empty();
    for (const Result& result : journal.results()) {
      fmt::print("{} {}{}{}\n", name_of(result.state), result.name, result.reason.empty() ? "" : ": ",
                 cli::printable(result.reason));
      is_good = is_good && !is_failure(result.state);
    }
    return is_good ? 0 : 1;
  };
}

}  // namespace

extern const Verb repro_verb = {"repro", "runs one case", declare};

}  // namespace backplane::conform
