// SPDX-License-Identifier: Apache-2.0
// `backplane-conform list`: prints all cases, or the digests of their lists.
#include <fmt/format.h>

#include "cases/cases.h"
#include "commands/verb.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

// Prints one line, "core 1 quick 1839 <SHA-256>", for each profile and selection: name, version, selection, number of
// cases, digest of their names.
void print_lists() {
  for (const Profile& profile : profiles()) {
    for (const bool full : {false, true}) {
      const Plan all = plan({.profiles = {std::string(profile.name)}, .full = full});
      fmt::print("{} {} {} {} {}\n", profile.name, profile.version, full ? "full" : "quick", all.total, all.list);
    }
  }
}

std::function<int()> declare(cli::Command command) {
  struct Options {
    CaseOptions case_options;
    bool lists = false;
  };
  const auto options = std::make_shared<Options>();
  declare_case_options(command, options->case_options);
  command.add_flag("--lists", options->lists,
                   "Print each profile's version, selection, number of cases and the SHA-256 of their names instead");
  return [options] {
    if (options->lists) {
      print_lists();
      return 0;
    }
    const Plan chosen = plan(options->case_options);
    for (const Case& one : chosen.cases) fmt::print("{}\n", one.name);
    fmt::print(stderr, "{} cases, list {}\n", chosen.cases.size(), chosen.list);
    return 0;
  };
}

}  // namespace

extern const Verb list_verb = {"list", "lists the cases that a run executes", declare};

}  // namespace backplane::conform
