// SPDX-License-Identifier: Apache-2.0
#include "runner/spelling.h"

#include <gtest/gtest.h>

namespace backplane::conform {
namespace {

TEST(Spelling, NearestIsTwoSlipsAwayAtMost) {
  const std::vector<std::string> words = {"certify", "compare", "list"};
  EXPECT_EQ(nearest("certify", words), "certify");
  EXPECT_EQ(nearest("lits", words), "list");
  EXPECT_EQ(nearest("certfiyy", words), "certify");
  EXPECT_EQ(nearest("liszzt", words), "list");
  EXPECT_EQ(nearest("lzzzist", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(100, 'l'), words), "");
}

// What the program says to these words.
std::string said(const std::string& line) {
  CLI::App app;
  app.require_subcommand(0, 1);
  std::string plugin;
  app.add_option("--plugin", plugin);
  CLI::App* certify = app.add_subcommand("certify", "certifies");
  certify->require_subcommand(1);
  certify->add_subcommand("commit", "commits")->add_option("--device", plugin);
  app.add_subcommand("child", "")->group("");
  keep_unknown_words(app);
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {  // what is missing is told after what is wrong
  }
  return unknown_word(app);
}

TEST(Spelling, TellsTheWordAndWhatWasMeant) {
  EXPECT_EQ(said("--plugin x"), "");
  EXPECT_EQ(said("--plugn x"), "there is no option '--plugn' (did you mean '--plugin'?)");
  EXPECT_EQ(said("--plugn=x"), "there is no option '--plugn' (did you mean '--plugin'?)");
  EXPECT_EQ(said("certfy"), "there is no command 'certfy' (did you mean 'certify'?)");
  EXPECT_EQ(said("chil"), "there is no command 'chil'");
  EXPECT_EQ(said("certify comit"), "there is no command 'comit' (did you mean 'commit'?)");
  EXPECT_EQ(said("certify commit --devcie 1"), "there is no option '--devcie' (did you mean '--device'?)");
  EXPECT_EQ(said("certify commit more"), "'more' is one word too many");
}

}  // namespace
}  // namespace backplane::conform
