// SPDX-License-Identifier: Apache-2.0
// backplane: the loader's own program.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/program.h"
#include "command.h"

namespace backplane::tools {
namespace {

struct Command {
  const char* name;
  const char* does;
  Action (*declare)(cli::Command command);
};

constexpr Command kCommands[] = {
    {"list", "backends and devices that are found, and every candidate that was refused, with its reason",
     declare_list},
    {"why", "the whole story of one backend", declare_why},
    {"info", "a model's operator sets, inputs, outputs, operators and problems", declare_info},
    {"explain", "where a model's nodes would run, and why", declare_explain},
    {"profile", "measures a model's nodes on each device: later placements count with it", declare_profile},
    {"run", "runs a model once", declare_run},
    {"bench", "runs a model often and measures", declare_bench},
    {"trace", "runs a model and writes a timeline for Chrome or Perfetto", declare_trace},
    {"conform", "runs the conformance harness, backplane-conform, with the words that follow", declare_conform},
    {"new-backend", "writes a backend project for a vendor: it compiles, runs and has a test", declare_new_backend},
};

void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

// One line on standard error; with --json also an object with the key "error".
int fail(bool json, const char* status, const std::string& text, int exit_status) {
  if (json) print_json({{"error", {{"status", status}, {"text", text}}}});
  fmt::print(stderr, "backplane: {}\n", text);
  return exit_status;
}

// This program's release, and the loader's, which is a library of its own and may be another.
std::string version_text() {
  const std::string_view loader(api().release.data, api().release.size);
  return fmt::format("backplane {} (loader {}, ABI {}.{})", BACKPLANE_RELEASE, loader, BP_VERSION_MAJOR(api().version),
                     BP_VERSION_MINOR(api().version));
}

int run(int argc, char** argv) {
  cli::Program program({.name = "backplane",
                        .does = "Finds hardware backends, and places and runs ONNX models on them.",
                        .footer = "Exit status: 0 success, 1 a negative result, 2 wrong usage.",
                        .version = version_text(),
                        .needs_command = true});
  bool json = false;
  std::map<std::string, Action> actions;
  for (const Command& command : kCommands) {
    cli::Command declared = program.root().add_command(command.name, command.does);
    declared.add_flag("--json", json, "The result as JSON on standard output");
    actions[command.name] = command.declare(declared);
  }
  const cli::Parsed parsed = program.parse(argc, argv);
  if (parsed.is_answered) return 0;
  if (!parsed.wrong.empty()) {
    json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;  // the option may not have it yet
    const std::string command = parsed.command.empty() ? "" : " " + parsed.command;
    return fail(json, "usage", fmt::format("{}; see backplane{} --help", parsed.wrong, command), 2);
  }
  try {
    const Outcome outcome = actions.at(parsed.command)();
    if (json) {
      print_json(outcome.json);
    } else {
      fmt::print("{}", outcome.text);
    }
    return outcome.is_positive ? 0 : 1;
  } catch (const Error& error) {
    return fail(json, api().status_name(error.status()), error.text(), 1);
  } catch (const Usage& error) {
    return fail(json, "usage", error.what(), 2);
  } catch (const std::exception& error) {
    return fail(json, "failure", error.what(), 1);
  }
}

}  // namespace
}  // namespace backplane::tools

int main(int argc, char** argv) {
  try {
    return backplane::tools::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "backplane: {}\n", error.what());
    return 1;
  }
}
