// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <gtest/gtest.h>

namespace backplane::cli {
namespace {

// A program with options, commands and subcommands.
class ProgramTest : public testing::Test {
 protected:
  explicit ProgramTest(bool needs_command = false)
      : program_({.name = "program", .does = "does", .version = "1.0", .needs_command = needs_command}) {
    Command root = program_.root();
    root.add_option("--plugin", text_);
    Command certify = root.add_command("certify", "certifies");
    certify.require_command();
    certify.add_command("commit", "commits").add_option("--device", text_);
    Command bench = root.add_command("bench", "measures");
    bench.add_option("model", text_).required();
    bench.add_option("--set", list_).one_each();
    bench.add_option("--device", list_).one_each().separated_by(',');
    bench.add_option("--runs", runs_).range(1, 10);
    bench.add_option("--seed", seed_);
    bench.add_option("--rtol", tolerance_).range(0.0, 1e300);
    bench.add_option("--output", output_);
    bench.add_option("--fallback", text_).one_of({"allow", "forbid"});
    conform_.push_back(root.add_command("conform", "another program"));
    conform_.front().pass_words_on();
    root.add_command("child", "").hide();
  }

  Parsed parse(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    return program_.parse(static_cast<int>(words.size()), words.data());
  }
  std::string wrong(std::vector<const char*> words) { return parse(std::move(words)).wrong; }

  Program program_;
  std::vector<Command> conform_;
  std::string text_;
  std::vector<std::string> list_;
  std::string output_;
  uint32_t runs_ = 5;
  uint64_t seed_ = 0;
  double tolerance_ = 0;
};

class NeedsCommandTest : public ProgramTest {
 protected:
  NeedsCommandTest() : ProgramTest(true) {}
};

TEST_F(ProgramTest, NamesTheWordAndASuggestion) {
  EXPECT_EQ(wrong({"--plugin", "x"}), "");
  EXPECT_EQ(wrong({"--plugn", "x"}), "there is no option '--plugn' (did you mean '--plugin'?)");
  EXPECT_EQ(wrong({"--plugn=x"}), "there is no option '--plugn' (did you mean '--plugin'?)");
  EXPECT_EQ(wrong({"certfy"}), "there is no command 'certfy' (did you mean 'certify'?)");
  EXPECT_EQ(wrong({"chil"}), "there is no command 'chil'");
  EXPECT_EQ(wrong({"certify", "comit"}), "there is no command 'comit' (did you mean 'commit'?)");
  EXPECT_EQ(wrong({"certify", "commit", "--devcie", "1"}), "there is no option '--devcie' (did you mean '--device'?)");
  EXPECT_EQ(wrong({"certify", "commit", "more"}), "unexpected argument 'more'");
}

TEST_F(ProgramTest, ListsTheCommandsOfACommand) {
  EXPECT_EQ(wrong({"certify"}), "'certify' needs one of the commands commit");
  EXPECT_EQ(wrong({"certify", "commit"}), "");
}

TEST_F(NeedsCommandTest, SaysWhereAnOptionBelongs) {
  EXPECT_EQ(wrong({"--runs", "3", "bench", "m"}), "option '--runs' must follow the command 'bench'");
  EXPECT_EQ(wrong({"--runs=3", "bench", "m"}), "option '--runs' must follow the command 'bench'");
}

TEST_F(NeedsCommandTest, TakesTheFirstWordAsTheCommand) {
  EXPECT_EQ(wrong({}), "a command is missing");
  EXPECT_EQ(wrong({"bnech"}), "there is no command 'bnech' (did you mean 'bench'?)");
  EXPECT_EQ(wrong({"--frobnicate"}), "there is no command '--frobnicate'");
  EXPECT_EQ(wrong({"bench", "m", "--rnus=2"}), "there is no option '--rnus' (did you mean '--runs'?)");
}

TEST_F(ProgramTest, NamesTheCommandThatWasCalled) {
  EXPECT_EQ(parse({}).command, "");
  EXPECT_EQ(parse({"bench", "m"}).command, "bench");
  EXPECT_EQ(parse({"certify", "comit"}).command, "certify");
}

TEST_F(ProgramTest, ReadsValues) {
  EXPECT_EQ(wrong({"bench", "--device", "a,b", "--runs", "3", "m", "--device=c"}), "");
  EXPECT_EQ(text_, "m");
  EXPECT_EQ(list_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(runs_, 3u);
}

TEST_F(ProgramTest, NamesWhatIsMissingOrDoesNotFit) {
  EXPECT_EQ(wrong({"bench"}), "model is required");
  EXPECT_EQ(wrong({"bench", "m", "--runs"}), "--runs needs a value");
  EXPECT_EQ(wrong({"bench", "m", "--fallback"}), "--fallback needs a value");
  EXPECT_NE(wrong({"bench", "m", "--runs", "11"}).find("--runs"), std::string::npos);
  EXPECT_NE(wrong({"bench", "m", "--runs", "many"}).find("--runs"), std::string::npos);
  EXPECT_NE(wrong({"bench", "m", "--fallback", "never"}).find("allow,forbid"), std::string::npos);
  EXPECT_EQ(wrong({"bench", "--sett"}), "there is no option '--sett' (did you mean '--set'?)");
}

TEST_F(ProgramTest, ReadsDecimalNumbers) {
  EXPECT_EQ(wrong({"bench", "m", "--seed", "010"}), "");
  EXPECT_EQ(seed_, 10u);
  EXPECT_EQ(wrong({"bench", "m", "--seed", "18446744073709551615"}), "");
  EXPECT_EQ(seed_, UINT64_MAX);
  for (const char* seed : {"--seed=-1", "--seed=18446744073709551616", "--seed=0x10", "--seed=1.5"})
    EXPECT_NE(wrong({"bench", "m", seed}).find("' must be a whole number from 0 to 18446744073709551615"),
              std::string::npos)
        << seed;
  EXPECT_EQ(wrong({"bench", "m", "--rtol=1e-3"}), "");
  EXPECT_EQ(tolerance_, 1e-3);
  EXPECT_EQ(wrong({"bench", "m", "--rtol=nan"}), "--rtol: 'nan' must be a number");
  EXPECT_EQ(wrong({"bench", "m", "--rtol=-1"}), "--rtol: '-1' must be a number from 0 to 1e+300");
  EXPECT_EQ(wrong({"bench", "m", "--runs=11"}), "--runs: '11' must be a number from 1 to 10");
}

TEST_F(ProgramTest, TakesNoOptionForAValue) {
  EXPECT_EQ(wrong({"bench", "m", "--output", "--runs"}), "--output: a value is missing before '--runs'");
  EXPECT_EQ(wrong({"bench", "m", "--set", "--help"}), "--set: a value is missing before '--help'");
  EXPECT_EQ(wrong({"bench", "--output", "--seed", "3"}), "--output: a value is missing before '--seed'");
  EXPECT_EQ(wrong({"bench", "m", "--seed", "--runs", "3"}), "--seed: a value is missing before '--runs'");
  EXPECT_EQ(wrong({"bench", "m", "--output=--runs"}), "");
  EXPECT_EQ(output_, "--runs");
  EXPECT_EQ(wrong({"bench", "--output", "-", "--", "--m"}), "");
  EXPECT_EQ(text_, "--m");
}

TEST_F(ProgramTest, RefusesEmptyValues) {
  EXPECT_EQ(wrong({"bench", "m", "--output", ""}), "--output: the value is empty");
  EXPECT_EQ(wrong({"bench", "m", "--output", "x"}), "");
}

TEST_F(ProgramTest, PassesWordsOn) {
  EXPECT_EQ(wrong({"conform", "onnx", "--help", "--data=x"}), "");
  EXPECT_EQ(conform_.front().words(), (std::vector<std::string>{"onnx", "--help", "--data=x"}));
  EXPECT_TRUE(conform_.front().was_called());
}

TEST_F(ProgramTest, AnswersHelpAndVersion) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(parse({"--version"}).is_answered);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "1.0\n");
  testing::internal::CaptureStdout();
  EXPECT_TRUE(parse({"--help"}).is_answered);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("certify"), std::string::npos);
  EXPECT_EQ(help.find("child"), std::string::npos);
}

}  // namespace
}  // namespace backplane::cli
