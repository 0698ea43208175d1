// SPDX-License-Identifier: Apache-2.0
// backplane: the loader's own program.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "command.h"
#include "suggest.h"

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
int fail(const CLI::App& app, bool json, const char* status, const std::string& text, int exit_status) {
  if (json) print_json({{"error", {{"status", status}, {"text", text}}}});
  fmt::print(stderr, "{}: {}\n", app.get_name(), text);
  return exit_status;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What is wrong with the words of a command line that CLI11 could not place, or nothing.
std::string wrong_words(const CLI::App& app) {
  if (app.get_subcommands().empty()) {
    if (app.remaining().empty()) return "a command is missing";
    const std::string word = app.remaining().front();
    return fmt::format("there is no command '{}'{}", word, suggest(word, command_names()));
  }
  const CLI::App& command = *app.get_subcommands().front();
  std::vector<std::string> words = command.get_prefix_command() ? std::vector<std::string>() : command.remaining();
  for (const std::string& word : app.remaining()) words.push_back(word);
  if (words.empty()) return {};
  // An option is the likelier mistake: the words after it may be its values.
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with("-"); });
  if (option == words.end()) return fmt::format("'{}' is one word too many", words.front());
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("there is no option '{}'{}", name, suggest(name, option_names(command)));
}

// This program's release, and the loader's, which is a library of its own and may be another.
std::string version_text() {
  const std::string_view loader(api().release.data, api().release.size);
  return fmt::format("backplane {} (loader {}, ABI {}.{})", BACKPLANE_RELEASE, loader, BP_VERSION_MAJOR(api().version),
                     BP_VERSION_MINOR(api().version));
}

int run(int argc, char** argv) {
  CLI::App app("Finds hardware backends, and places and runs ONNX models on them.", "backplane");
  app.require_subcommand(0, 1);
  app.allow_extras();  // words that CLI11 can't place are explained by wrong_words
  app.set_version_flag("--version", version_text());
  app.footer("Exit status: 0 success, 1 a negative result, 2 wrong usage.");
  bool json = false;
  std::map<const CLI::App*, Action> actions;
  for (const Command& command : kCommands) {
    CLI::App* declared = app.add_subcommand(command.name, command.does);
    declared->allow_extras();
    declared->add_flag("--json", json, "The result as JSON on standard output");
    actions[declared] = command.declare(*declared);
  }
  std::string wrong;
  try {
    app.parse(argc, argv);
    wrong = wrong_words(app);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    wrong = wrong_words(app);
    if (wrong.empty()) wrong = error.what();
    json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;  // it may not have been read yet
  }
  if (!wrong.empty()) {
    const std::string command = app.get_subcommands().empty() ? "" : " " + app.get_subcommands().front()->get_name();
    return fail(app, json, "usage", fmt::format("{}; see backplane{} --help", wrong, command), 2);
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
