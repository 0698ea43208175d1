// SPDX-License-Identifier: Apache-2.0
// backplane-conform: does a backend keep the contract?
#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "backplane/version.h"
#include "certify/command.h"
#include "cli/program.h"
#include "report/command.h"
#include "runner/case_child.h"
#include "runner/onnx.h"
#include "runner/plugin_run.h"

namespace {

namespace cli = backplane::cli;

struct Command {
  const char* name;
  const char* does;
  std::function<int()> (*declare)(cli::Command command);
};

constexpr Command kCommands[] = {
    {"onnx", "runs ONNX's own test data on one device", backplane::conform::declare_onnx},
    {"vendor", "runs a vendor's own cases, with its own tolerances", backplane::conform::declare_vendor},
    {"list", "tells the names of the cases that run without a command", backplane::conform::declare_list},
    {"repro", "runs one case alone", backplane::conform::declare_repro},
    {"merge", "makes one journal of those of all shards", backplane::conform::declare_merge},
    {"report", "tells of a run: summary.json, junit.xml, coverage.csv and one HTML page",
     backplane::conform::declare_report},
    {"compare", "tells what a run does worse and better than another", backplane::conform::declare_compare},
    {"keygen", "makes a key to sign bundles with", backplane::conform::declare_keygen},
    {"certify", "commits to a plugin, runs the cases with seeds of a nonce, signs",
     backplane::conform::declare_certify},
    {"verify-bundle", "tells what a certification's bundle proves", backplane::conform::declare_verify_bundle},
    {"case-child", "", backplane::conform::declare_case_child},  // of the harness itself
};

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is told as one that cannot be written
  cli::Program program({.name = "backplane-conform",
                        .does = "Tells whether a backend keeps Backplane's contract.",
                        .version = fmt::format("backplane-conform {} (ABI {}.{})", BACKPLANE_RELEASE,
                                               BP_VERSION_MAJOR(BP_ABI_VERSION), BP_VERSION_MINOR(BP_ABI_VERSION))});
  std::map<std::string, std::function<int()>> actions;
  actions[""] = backplane::conform::declare_plugin_run(program.root());
  for (const Command& command : kCommands) {
    cli::Command declared = program.root().add_command(command.name, command.does);
    if (*command.does == 0) declared.hide();
    actions[command.name] = command.declare(declared);
  }
  const cli::Parsed parsed = program.parse(argc, argv);
  if (parsed.is_answered) return 0;
  if (!parsed.wrong.empty()) {
    fmt::print(stderr, "backplane-conform: {}; --help tells what there is\n", parsed.wrong);
    return 2;
  }
  return actions.at(parsed.command)();
}
