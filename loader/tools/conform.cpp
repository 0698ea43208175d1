// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "command.h"

namespace backplane::tools {
namespace {

// Replaces this process with the harness. The harness is a separate program because it must reach the backends that it
// judges only through the ABI. Throws if the harness cannot be started, and never returns.
Outcome conform(const std::vector<std::string>& words) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "backplane-conform";
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw Failure(fmt::format(
      "'{}' cannot be run ({}): the harness must be in the folder of this program (Debian: apt install "
      "backplane-conform; in a build: cmake --build BUILD --target backplane-conform); Python's package has none",
      program.string(), std::strerror(errno)));
}

Action declare(cli::Command command) {
  command.remove_option("--json");  // the harness has its own options, including --help
  command.pass_words_on();
  return [command] { return conform(command.words()); };
}

}  // namespace

extern const Verb conform_verb = {
    "conform", "runs the conformance harness, backplane-conform, with the arguments that follow", declare};

}  // namespace backplane::tools
