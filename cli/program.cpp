// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>

#include "cli/completion.h"
#include "cli/guarded.h"
#include "cli/manual_page.h"
#include "cli/suggest.h"

namespace backplane::cli {
namespace {

// Makes `app` and its commands accept unknown words, which unknown_word reports after parsing.
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

// Returns an error for an unknown word. Works even if parsing failed. Empty if every word is known.
std::string unknown_word(const CLI::App& app) {
  const CLI::App* command = &app;  // the innermost command that was called
  std::vector<std::string> words = app.remaining();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    if (command->get_prefix_command()) continue;  // its words belong to another program
    const std::vector<std::string> more = command->remaining();
    words.insert(words.begin(), more.begin(), more.end());
  }
  std::erase(words, "--");  // what follows it are arguments, such as files whose names begin with '-'
  if (words.empty()) return "";
  // If there are several unknown words, reports an option first, because the word after it may be its value.
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::vector<std::string> known = options_of(*command);
    if (std::ranges::find(known, name) != known.end())
      return fmt::format("option '{}' must follow the command '{}'", name, command->get_name());
    return fmt::format("there is no option '{}'{}", name, suggest(name, known));
  }
  const std::vector<std::string> commands = commands_of(*command);
  if (commands.empty()) return fmt::format("unexpected argument '{}'", words.front());
  return unknown_command(words.front(), commands);
}

// Empty if a command was given. Otherwise an error that names the first unparsed word, if there is one, even if it
// looks like an option.
std::string missing_command(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return "";
  const std::vector<std::string> words = app.remaining();
  return words.empty() ? "a command is missing" : unknown_command(words.front(), commands_of(app));
}

// Empty if the innermost command has no commands of its own, or one of them was given.
std::string missing_subcommand(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> commands = commands_of(*command);
  if (command == &app || commands.empty() || !command->remaining().empty()) return "";
  return fmt::format("'{}' needs one of the commands {}", command->get_name(), fmt::join(commands, ", "));
}

// Returns an error for an option whose value is missing, because CLI11 takes the option that follows for the value.
// A value that begins with "--" is given as "--name=--value". Empty if there is none.
std::string missing_value(const CLI::App& app, int argc, const char* const* argv) {
  std::set<std::string, std::less<>> with_values;
  for (const CLI::App* command = &app;;) {
    if (command->get_prefix_command()) return "";  // the words belong to another program
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() == 0) continue;
      for (const std::string& name : option->get_lnames()) with_values.insert("--" + name);
    }
    if (command->get_subcommands().empty()) break;
    command = command->get_subcommands().front();
  }
  for (int i = 1; i + 1 < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view next(argv[i + 1]);
    if (with_values.contains(std::string_view(argv[i])) && next.starts_with("--"))
      return fmt::format("{}: a value is missing before '{}'", argv[i], next);
  }
  return "";
}

// The values that an option allows. CLI11 stores them in the name of the option's type, as "TEXT:{a,b}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find(":{"), end = type.rfind('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::istringstream words(type.substr(begin + 2, end - begin - 2));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

bool may_be_file(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type == "TEXT" || type == "FILE" || type == "FOLDER" || type == "PATH" || type == "NAME=FILE";
}

CommandWords words_of(const CLI::App& app) {
  CommandWords words{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const bool is_positional = option->get_positional();
    if (option->get_group().empty() || (!is_positional && option->get_lnames().empty())) continue;
    words.options.push_back({.name = is_positional ? option->get_name(true) : "--" + option->get_lnames().front(),
                             .help = option->get_description(),
                             .choices = choices_of(*option),
                             .is_flag = option->get_items_expected_max() == 0,
                             .may_be_file = may_be_file(*option),
                             .is_positional = is_positional});
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) words.commands.push_back(words_of(*command));
  }
  return words;
}

}  // namespace

Program::Program(const About& about) : app_(std::make_unique<CLI::App>(about.does, about.name)), about_(about) {
  app_->require_subcommand(0, 1);  // at most one command; commands inherit this setting and the footer
  app_->set_version_flag("--version", about.version);
  app_->footer(about.footer);
  app_->add_option("--completion", completion_, "Print a script with which a shell completes words, and exit")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app_->add_flag("--man", wants_manual_, "Print the manual page, and exit");
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
      std::ostringstream answer;
      app_->exit(error, answer);  // the help or the version
      print_out(answer.str());
      return {.is_answered = true};
    }
    failure = error.what();
    // CLI11's "--device: 1 required TEXT missing"
    if (failure.ends_with(" missing")) failure = failure.substr(0, failure.find(": ")) + " needs a value";
  }
  if (failure.empty() && app_->get_subcommands().empty() && app_->remaining().empty() &&
      (wants_manual_ || !completion_.empty())) {
    const CommandWords words = words_of(*app_);
    print_out(wants_manual_ ? manual_page(words, about_.version, about_.footer) : completion(words, completion_));
    return {.is_answered = true};
  }
  if (!app_->get_subcommands().empty()) parsed.command = app_->get_subcommands().front()->get_name();
  const bool is_own_mistake = !failure.empty() && app_->get_subcommands().empty() && app_->remaining().empty();
  if (about_.needs_command && !is_own_mistake) parsed.wrong = missing_command(*app_);
  if (parsed.wrong.empty()) parsed.wrong = missing_value(*app_, argc, argv);
  if (parsed.wrong.empty()) parsed.wrong = unknown_word(*app_);
  if (parsed.wrong.empty() && !failure.empty()) parsed.wrong = missing_subcommand(*app_);
  if (parsed.wrong.empty()) parsed.wrong = failure;
  return parsed;
}

}  // namespace backplane::cli
