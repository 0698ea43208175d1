// SPDX-License-Identifier: Apache-2.0
// Tests that completion scripts and the manual page have the words of a program.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/completion.h"
#include "cli/manual_page.h"

namespace backplane::cli {
namespace {

using testing::HasSubstr;

CommandWords program() {
  return {"tool",
          "does it's things",
          {{.name = "--version", .help = "the version", .choices = {}, .is_flag = true}},
          {{"run",
            "runs",
            {{.name = "model", .help = "a file", .choices = {}, .is_positional = true},
             {.name = "--mode", .help = "how: [x]", .choices = {"fast", "slow"}},
             {.name = "--device", .help = "which", .choices = {}},
             {.name = "--out", .help = "where", .choices = {}, .may_be_file = true}},
            {}},
           {"certify", "certifies", {}, {{"commit", "commits", {}, {}}}}}};
}

// Returns bash's completions for the last of `words`, separated by spaces.
std::string completed(const std::string& words) {
  const std::string folder = testing::TempDir() + "/completion", script = folder + ".bash", out = folder + ".out";
  std::filesystem::create_directories(folder + "/a_folder");
  std::ofstream(script) << completion(program(), "bash") << "COMP_WORDS=(" << words
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tool\necho \"${COMPREPLY[*]}\"\n";
  const std::string command = "cd " + folder + " && bash " + script + " >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(bugprone-command-processor): completion is a shell's
  std::string line;
  std::ifstream file(out);
  std::getline(file, line);
  return line;
}

TEST(Words, BashCompletes) {
  EXPECT_EQ(completed("tool r"), "run");
  EXPECT_EQ(completed("tool --v"), "--version");
  EXPECT_EQ(completed("tool run --m"), "--mode");
  EXPECT_EQ(completed("tool run --mode f"), "fast");
  EXPECT_EQ(completed("tool certify c"), "commit");
  EXPECT_THAT(completed("tool run --out a_"), HasSubstr("a_folder"));
  EXPECT_EQ(completed("tool run --device a_"), "");
}

TEST(Words, OtherShells) {
  EXPECT_THAT(
      completion(program(), "fish"),
      HasSubstr("complete -c tool -n '__fish_seen_subcommand_from run' -l mode -d 'how: [x]' -x -a 'fast slow'"));
  EXPECT_THAT(completion(program(), "zsh"), HasSubstr("'*--mode[how\\: \\[x\\]]:value:(fast slow)'"));
  EXPECT_EQ(completion(program(), "tcsh"), "");
}

TEST(Words, ManualPageHasEveryWord) {
  const std::string page = manual_page(program(), "tool 1.0", "0: success.");
  for (const char* word : {".TH TOOL 1", "does it's things", ".SS run", "\\fB\\-\\-mode\\fR fast|slow",
                           ".SS certify commit", "0: success."})
    EXPECT_THAT(page, HasSubstr(word));
}

}  // namespace
}  // namespace backplane::cli
