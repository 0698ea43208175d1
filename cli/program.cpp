// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/suggest.h"

namespace backplane::cli {
namespace {

// Lets `app` and its commands take words that they do not know, for unknown_word to explain.
void keep_unknown_words(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) keep_unknown_words(*command);
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  const auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(is_shown)) names.push_back(command->get_name());
  return names;
}

std::string unknown_command(const std::string& word, const std::vector<std::string>& commands) {
  return fmt::format("there is no command '{}'{}", word, suggest(word, commands));
}

// After parsing, even if that failed. Empty if every word is known.
std::string unknown_word(const CLI::App& app) {
  const CLI::App* command = &app;  // the innermost that was called
  std::vector<std::string> words = app.remaining();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    if (command->get_prefix_command()) continue;  // they are for another program
    const std::vector<std::string> more = command->remaining();
    words.insert(words.begin(), more.begin(), more.end());
  }
  if (words.empty()) return "";
  // An option is the likelier mistake: the word after it may be its value.
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format("there is no option '{}'{}", name, suggest(name, options_of(*command)));
  }
  const std::vector<std::string> commands = commands_of(*command);
  if (commands.empty()) return fmt::format("'{}' is one word too many", words.front());
  return unknown_command(words.front(), commands);
}

// For a program that needs a command: the first word is taken as one, even if it looks like an option.
std::string missing_command(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return "";
  const std::vector<std::string> words = app.remaining();
  return words.empty() ? "a command is missing" : unknown_command(words.front(), commands_of(app));
}

}  // namespace

Program::Program(const About& about)
    : app_(std::make_unique<CLI::App>(about.does, about.name)), needs_command_(about.needs_command) {
  app_->require_subcommand(0, 1);  // inherited by commands: at most one of them, and the footer
  app_->set_version_flag("--version", about.version);
  app_->footer(about.footer);
}

Program::~Program() = default;

Command Program::root() {
  return Command(app_.get());
}

Parsed Program::parse(int argc, const char* const* argv) {
  keep_unknown_words(*app_);
  Parsed parsed;
  std::string failure;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app_->exit(error);  // prints the help or the version
      return {.is_answered = true};
    }
    failure = error.what();
  }
  if (!app_->get_subcommands().empty()) parsed.command = app_->get_subcommands().front()->get_name();
  if (needs_command_) parsed.wrong = missing_command(*app_);
  if (parsed.wrong.empty()) parsed.wrong = unknown_word(*app_);
  if (parsed.wrong.empty()) parsed.wrong = failure;
  return parsed;
}

}  // namespace backplane::cli
