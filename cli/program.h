// SPDX-License-Identifier: Apache-2.0
// A program and its commands.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace backplane::cli {

struct About {
  std::string name;
  std::string does;            // printed above the help
  std::string footer;          // printed below the help of the program and of every command
  std::string version;         // the line that --version prints
  bool needs_command = false;  // a command is required
};

// The result of parsing. After an error, options may lack their values.
struct Parsed {
  std::string command;  // the command that was called; empty: none
  std::string wrong;  // the first error, such as "there is no option '--plugn' (did you mean '--plugin'?)"; empty: none
  bool is_answered = false;  // help, version, manual page or completion was printed: exit with status 0
};

class Program {
 public:
  explicit Program(const About& about);
  ~Program();

  // The program's own options, which precede any command.
  Command root();
  // To be called after all declarations. Reports a missing command first, then an option without a value, then an
  // unknown word, then any other error.
  Parsed parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  About about_;
  std::string completion_;  // the shell given to --completion
  bool wants_manual_ = false;
};

}  // namespace backplane::cli
