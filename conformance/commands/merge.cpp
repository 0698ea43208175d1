// SPDX-License-Identifier: Apache-2.0
// `backplane-conform merge`: merges the journals of all shards.
#include "journal/merge.h"

#include "cli/overwrite.h"
#include "commands/verb.h"
#include "run/plugin_run.h"
#include "run/print_report.h"

namespace backplane::conform {
namespace {

std::function<int()> declare(cli::Command command) {
  struct Options {
    std::vector<std::string> parts;
    std::string out, require_level;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  command.add_option("PARTS", options->parts, "The folders, or journals, of all shards").shown_as("PATH").required();
  command.add_option("--out", options->out, "Folder for the merged journal").shown_as("FOLDER");
  command.add_option("--require-level", options->require_level, "Succeed if this level is reached: L0, L1, L2 or L3")
      .one_of({"L0", "L1", "L2", "L3"});
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  return [options] {
    std::vector<std::string> journals;
    for (const std::string& name : options->parts) journals.push_back(journal_file(name));
    if (!options->out.empty()) cli::keep_inputs("--out", journal_file(options->out), journals);
    std::vector<std::pair<std::string, Record>> parts;
    for (const std::string& name : options->parts) parts.emplace_back(name, read_journal(name));
    const Record whole = merge(parts);
    check_list(whole.header);
    if (!options->out.empty()) write_journal(options->out, whole);
    double seconds = 0;
    for (const Result& result : whole.results) seconds += result.seconds;
    return print_report(whole.header, whole.results,
                        outcome(whole.header, whole.results, options->require_level, seconds), options->json);
  };
}

}  // namespace

extern const Verb merge_verb = {"merge", "merges the journals of all shards into one", declare};

}  // namespace backplane::conform
