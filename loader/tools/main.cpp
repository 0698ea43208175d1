// SPDX-License-Identifier: Apache-2.0
// backplane: the loader's own program.
#include <fmt/format.h>

#include <cstdio>

#include "command.h"

namespace backplane::tools {
namespace {

struct Command {
  const char* name;
  const char* does;
  Action (*declare)(CLI::App& command);
};

constexpr Command kCommands[] = {
    {"list", "backends and devices that are found, and every candidate that was refused, with its reason",
     declare_list},
    {"why", "the whole story of one backend", declare_why},
    {"info", "a model's operator sets, inputs, outputs, operators and problems", declare_info},
    {"explain", "where a model's nodes would run, and why", declare_explain},
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
int fail(const CLI::App& app, bool json, const char* status, const std::string& text, int exit_status) {
  if (json) print_json({{"error", {{"status", status}, {"text", text}}}});
  fmt::print(stderr, "{}: {}\n", app.get_name(), text);
  return exit_status;
}

int run(int argc, char** argv) {
  CLI::App app("Finds hardware backends, and places and runs ONNX models on them.", "backplane");
  app.require_subcommand(0, 1);
  app.allow_extras();  // a word that is no command, named below
  app.footer("Exit status: 0 success, 1 a negative result, 2 wrong usage.");
  bool json = false;
  std::map<const CLI::App*, Action> actions;
  for (const Command& command : kCommands) {
    CLI::App* declared = app.add_subcommand(command.name, command.does);
    declared->allow_extras(false);
    declared->add_flag("--json", json, "The result as JSON on standard output");
    actions[declared] = command.declare(*declared);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    return fail(app, false, "", fmt::format("{}; see backplane --help", error.what()), 2);
  }
  if (app.get_subcommands().empty()) {
    const std::string seen = argc > 1 ? fmt::format("there is no command '{}'", argv[1]) : "a command is missing";
    return fail(app, false, "", seen + "; see backplane --help", 2);
  }
  if (!app.remaining().empty()) {
    return fail(app, false, "", fmt::format("'{}' is not understood; see backplane --help", app.remaining().front()),
                2);
  }
  try {
    const Outcome outcome = actions.at(app.get_subcommands().front())();
    if (json) {
      print_json(outcome.json);
    } else {
      fmt::print("{}", outcome.text);
    }
    return outcome.is_positive ? 0 : 1;
  } catch (const Error& error) {
    return fail(app, json, api().status_name(error.status()), error.text(), 1);
  } catch (const Usage& error) {
    return fail(app, json, "usage", error.what(), 2);
  } catch (const std::exception& error) {
    return fail(app, json, "failure", error.what(), 1);
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
