// SPDX-License-Identifier: Apache-2.0
// A command and its parts: options, flags, arguments and subcommands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace backplane::cli {

// An option, flag or argument of a command. A handle: copies refer to the same option, which lives as long as its
// Program. Each function returns the handle, so that calls can be chained.
class Option {
 public:
  Option required();
  Option hidden();                  // not in the help, completion or the manual page
  Option one_each();                // for lists: each occurrence takes one value, so that an argument may follow
  Option separated_by(char c);      // for lists: "a,b" with separator ',' is two values
  Option range(int low, int high);  // inclusive
  Option range(double low, double high);
  // The kind of value that the help shows in place of TEXT. Completion offers files only for TEXT, FILE and FOLDER.
  Option shown_as(std::string_view kind);
  Option one_of(std::initializer_list<std::string_view> words);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

// A command, or the program itself. A handle, like Option.
class Command {
 public:
  // "--name" adds an option, "name" a positional argument. `value` keeps its value if the option is not given, and must
  // live until the command line is parsed. A single text may not be empty, because a script may pass "" by mistake.
  Option add_option(std::string_view name, std::string& value, std::string_view help = {});
  Option add_option(std::string_view name, std::vector<std::string>& value, std::string_view help = {});
  Option add_option(std::string_view name, uint32_t& value, std::string_view help = {});
  Option add_option(std::string_view name, uint64_t& value, std::string_view help = {});
  Option add_option(std::string_view name, std::optional<uint64_t>& value, std::string_view help = {});
  Option add_option(std::string_view name, double& value, std::string_view help = {});
  Option add_flag(std::string_view name, bool& value, std::string_view help = {});
  // Removes an option that was added before.
  void remove_option(std::string_view name);

  Command add_command(std::string_view name, std::string_view help);
  void require_command();  // requires exactly one of the subcommands
  void hide();             // from the help, suggestions, completion and the manual page
  // Stops parsing at the first unknown word; words() returns it and all words after it. "--help" counts as unknown.
  void pass_words_on();

  // To be called after parsing.
  bool was_called() const;
  std::vector<std::string> words() const;  // the words that were not parsed

 private:
  friend class Program;
  explicit Command(CLI::App* app) : app_(app) {}

  CLI::App* app_;
};

}  // namespace backplane::cli
