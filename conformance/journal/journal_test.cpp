// SPDX-License-Identifier: Apache-2.0
#include "journal/journal.h"

#include <gmock/gmock.h>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Journals : public testing::Test {
 protected:
  const fs::path folder =
      fs::path(testing::TempDir()) /
      (std::string("backplane_journal_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  const fs::path file = folder / "journal.jsonl";

  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }
  std::string text() const {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void append(const std::string& text) const { std::ofstream(file, std::ios::app) << text; }
};

TEST(Result, SurvivesALineOfJson) {
  Result result = {"ops/Add/float/row/0", State::kWaived, "quote \" and \xff", 0.5, 3};
  result.worst = HUGE_VAL;
  result.opset = 14;
  result.errors[8] = 7;
  result.profile = "core";
  result.seed = UINT64_MAX;
  result.repro = "backplane-conform repro x";
  result.was = State::kCrash;
  Result read;
  ASSERT_TRUE(from_json_line(to_json_line(result), read));
  EXPECT_EQ(read.name, result.name);
  EXPECT_EQ(read.state, State::kWaived);
  EXPECT_EQ(read.was, State::kCrash);
  EXPECT_EQ(read.nodes, 3u);
  EXPECT_EQ(read.opset, 14u);
  EXPECT_EQ(read.errors, result.errors);
  EXPECT_EQ(read.profile, "core");
  EXPECT_EQ(read.seed, UINT64_MAX);
  EXPECT_EQ(read.repro, result.repro);
  EXPECT_GT(read.worst, 1e200);
  EXPECT_THAT(to_json_line(result), HasSubstr(R"("group":"ops","operator":"Add","dtype":"float")"));
  EXPECT_FALSE(from_json_line("{\"case\":1}", read));
  EXPECT_FALSE(from_json_line("nonsense", read));
}

TEST(Result, AStateAfterAnExceptionComesWithTheStateBefore) {
  Result read;
  for (const State state : {State::kWaived, State::kExpectedFail, State::kUnexpectedPass}) {
    EXPECT_FALSE(from_json_line(to_json_line({.name = "ops/Add/float/row/0", .state = state}), read));
    EXPECT_TRUE(
        from_json_line(to_json_line({.name = "ops/Add/float/row/0", .state = state, .was = State::kFail}), read));
  }
  EXPECT_FALSE(
      from_json_line(to_json_line({.name = "ops/Add/float/row/0", .state = State::kPass, .was = State::kFail}), read));
}

TEST(Result, ErrorsAreCountedUpToTheirBound) {
  EXPECT_EQ(bucket_of(0), 0u);
  EXPECT_EQ(bucket_of(1e-9), 1u);
  EXPECT_EQ(bucket_of(0.5), 7u);
  EXPECT_EQ(bucket_of(0.51), 8u);
  EXPECT_EQ(bucket_of(1), 8u);
  EXPECT_EQ(bucket_of(1.01), 9u);
  EXPECT_EQ(bucket_of(2.01), 10u);
  EXPECT_EQ(bucket_of(HUGE_VAL), 10u);
  EXPECT_EQ(bucket_of(NAN), 10u);
}

TEST(Header, SurvivesALineOfJson) {
  Header header = {.harness = "ab", .plugin = "p.so", .selection = "full", .profiles = {"core"}, .shard = {2, 3}};
  header.seeds = {UINT64_MAX, 5};
  header.identity = {.backend = "acme", .version = "1.2", .device = "Acme 9"};
  Header read;
  ASSERT_TRUE(from_json_line(to_json_line(header), read));
  EXPECT_EQ(to_json_line(read), to_json_line(header));
  EXPECT_FALSE(from_json_line("{}", read));
}

TEST(Header, TheNonceDeterminesTheSeedOfEveryCase) {
  EXPECT_EQ((Seeds{1, 2}.of_cases()), 2u);
  EXPECT_EQ(Seeds{.seed = 7}.of_cases(), 7u);
}

TEST(Header, TimesHaveOneForm) {
  EXPECT_TRUE(is_time(utc_now()));
  EXPECT_LT(utc_now(), utc_in(3600));
  for (const char* other : {"", "2026-11-20", "2026-11-20T13:00:00", "2026-11-20 13:00:00Z", "2026-11-20T13:00:00Z ",
                            "2026-11-31T13:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T13:60:00Z"})
    EXPECT_FALSE(is_time(other)) << other;
}

TEST_F(Journals, AreWrittenAsTheyGrow) {
  Journal journal(folder, {.selection = "quick"});
  journal.add({"a", State::kPass, "", 0, 1});
  EXPECT_THAT(text(), HasSubstr("{\"run\""));
  EXPECT_THAT(text(), HasSubstr("{\"case\":\"a\""));
}

TEST_F(Journals, ResumeAfterAnInterruption) {
  Journal(folder, {.selection = "quick"}).add({"a", State::kPass, "", 0, 1});
  const std::string whole = text();
  append("{\"case\":\"b\",\"sta");
  Journal journal(folder, {.selection = "quick", .started = "later"}, true);
  EXPECT_EQ(text(), whole);
  journal.add({"c", State::kFail});
  ASSERT_EQ(journal.results().size(), 2u);
  EXPECT_EQ(journal.results()[0].name, "a");
  EXPECT_EQ(read_journal(folder).results.size(), 2u);
}

TEST_F(Journals, OfAHeaderCutShortBeginAnew) {
  fs::create_directories(folder);
  append("{\"run\":{\"jour");
  Journal(folder, {.selection = "quick"}, true).add({"a", State::kPass});
  EXPECT_EQ(read_journal(folder).results.size(), 1u);
}

TEST_F(Journals, AreNotOverwritten) {
  Journal(folder, {.selection = "quick"}).add({"a", State::kPass});
  EXPECT_THAT([&] { Journal(folder, {.selection = "quick"}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("--resume")));
}

TEST_F(Journals, OfAnotherRunAreRefused) {
  Journal(folder, {.plugin_sha256 = "12", .selection = "quick"}).add({"a", State::kPass});
  EXPECT_THAT([&] { Journal(folder, {.plugin_sha256 = "13", .selection = "quick"}, true); },
              ThrowsMessage<std::runtime_error>(HasSubstr("plugin_sha256 is \"13\" here and \"12\" there")));
}

TEST_F(Journals, NameTheDamagedLine) {
  Journal(folder, {.selection = "quick"}).add({"a", State::kPass});
  append("nonsense\n");
  EXPECT_THAT([&] { read_journal(folder); }, ThrowsMessage<std::runtime_error>(HasSubstr("line 3 is not a result")));
}

}  // namespace
}  // namespace backplane::conform
