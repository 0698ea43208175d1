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

// The result of parsing. After a mistake, options may not have their values yet.
struct Parsed {
  std::string command;  // the one that was called; empty: none
  std::string wrong;    // the first mistake: "there is no option '--plugn' (did you mean '--plugin'?)"; empty: none
  bool is_answered = false;  // by the help, the version or the like, which has been printed: exit status 0
};

class Program {
 public:
  explicit Program(const About& about);
  ~Program();

  // The program's own words, before any command.
  Command root();
  // To be called when everything is declared. An unknown word is reported before any other mistake.
  Parsed parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  About about_;
  std::string completion_;  // the shell that --completion names
  bool wants_manual_ = false;
};

}  // namespace backplane::cli
