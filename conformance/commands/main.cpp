// SPDX-License-Identifier: Apache-2.0
// backplane-conform: tests whether a backend keeps the contract.
#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "backplane/version.h"
#include "cli/guarded.h"
#include "cli/program.h"
#include "commands/verb.h"
#include "families/families.h"
#include "run/plugin_run.h"

#ifdef __SANITIZE_ADDRESS__
// The case memory/too_much requests more memory than any machine has. With this option the allocation fails, so that
// the plugin can refuse the request; by default AddressSanitizer would end the process.
extern "C" const char* __asan_default_options();   // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  return "allocator_may_return_null=1";
}
#endif

namespace backplane::conform {

#define BACKPLANE_ENTRY(name) extern const Verb name##_verb;
#include "verbs.inc"
#undef BACKPLANE_ENTRY

namespace {

constexpr const Verb* kVerbs[] = {
#define BACKPLANE_ENTRY(name) &name##_verb,
#include "verbs.inc"
#undef BACKPLANE_ENTRY
};

int run(int argc, char** argv) {
  use_families();
  cli::Program program({.name = "backplane-conform",
                        .does = "Tests whether a backend keeps Backplane's contract.",
                        .version = fmt::format("backplane-conform {} (ABI {}.{})", BACKPLANE_RELEASE,
                                               BP_VERSION_MAJOR(BP_ABI_VERSION), BP_VERSION_MINOR(BP_ABI_VERSION))});
  std::map<std::string, std::function<int()>> actions;
  actions[""] = declare_plugin_run(program.root());
  for (const Verb* verb : kVerbs) {
    cli::Command declared = program.root().add_command(verb->name, verb->does);
    if (*verb->does == 0) declared.hide();
    actions[verb->name] = verb->declare(declared);
  }
  const cli::Parsed parsed = program.parse(argc, argv);
  if (parsed.is_answered) return cli::kSuccess;
  if (!parsed.wrong.empty()) throw cli::Usage(fmt::format("{}; see --help", parsed.wrong));
  const int status = actions.at(parsed.command)();
  // In a process that runs cases, standard output belongs to the plugin, which may even have closed it.
  return parsed.command == case_child_verb.name ? status : cli::printed(status);
}

}  // namespace
}  // namespace backplane::conform

int main(int argc, char** argv) {
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write past the file size limit then fails with EFBIG
  return backplane::cli::guarded("backplane-conform", [&] { return backplane::conform::run(argc, argv); });
}
