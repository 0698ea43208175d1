// SPDX-License-Identifier: Apache-2.0
// A program and its commands.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace backplane::cli {

struct About {
  std::string name;
  std::string does;            // above the help
  std::string footer;          // below the help of the program and of every command
  std::string version;         // the line that --version prints
  bool needs_command = false;  // a command is required
};

// The result of parsing. After a mistake, options may lack their values.
struct Parsed {
  std::string command;  // the one that was called; empty: none
  std::string wrong;    // the first mistake: "there is no option '--plugn' (did you mean '--plugin'?)"; empty: none
  bool is_answered = false;  // the help, version, manual page or completion was printed: exit with 0
};

class Program {
 public:
  explicit Program(const About& about);
  ~Program();

  // The program's own options, which come before any command.
  Command root();
  // To be called after all declarations. An unknown word is reported before any other mistake.
  Parsed parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  About about_;
  std::string completion_;  // the shell that --completion names
  bool wants_manual_ = false;
};

}  // namespace backplane::cli
