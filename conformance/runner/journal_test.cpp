// SPDX-License-Identifier: Apache-2.0
#include "runner/journal.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace backplane::conform {
namespace {

Summary summary_of(std::vector<Result> results) {
  Journal journal("");
  for (Result& result : results) journal.add(std::move(result));
  return journal.summary();
}

TEST(Journal, CountsByState) {
  const Summary summary = summary_of({{"a", State::kPass, "", 0, 1},
                                      {"b", State::kPass, "", 0, 0},
                                      {"c", State::kFail, "x", 0, 1},
                                      {"d", State::kNotSupported, "y", 0, 0}});
  EXPECT_EQ(summary[State::kPass], 2u);
  EXPECT_EQ(summary.no_node, 1u);
  EXPECT_EQ(summary.executed, 2u);
  EXPECT_TRUE(summary.has_failures());
  const auto json = nlohmann::json::parse(summary.to_json());
  EXPECT_EQ(json["passed"], 2);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["not_supported"], 1);
  EXPECT_EQ(json["total"], 4);
  EXPECT_TRUE(json["levels"].is_array());
}

TEST(Journal, ADeviceThatRunsNothingPassesNothing) {
  const Summary summary = summary_of({{"a", State::kPass, "", 0, 0}, {"b", State::kNotSupported, "", 0, 0}});
  EXPECT_EQ(summary[State::kPass], 0u);
  EXPECT_EQ(summary[State::kMistrusted], 1u);
  EXPECT_EQ(summary.executed, 0u);
}

TEST(Journal, NotSupportedIsNoFailure) {
  EXPECT_FALSE(summary_of({{"a", State::kPass, "", 0, 1}, {"b", State::kNotSupported, "", 0, 0}}).has_failures());
}

TEST(Journal, ResultsSurviveALineOfJson) {
  const Result result = {"node/test_add", State::kCrash, "quote \" and \xff", 0.5, 3};
  Result read;
  ASSERT_TRUE(from_json_line(to_json_line(result), read));
  EXPECT_EQ(read.name, result.name);
  EXPECT_EQ(read.state, State::kCrash);
  EXPECT_EQ(read.nodes, 3u);
  EXPECT_FALSE(from_json_line("{\"case\":1}", read));
  EXPECT_FALSE(from_json_line("nonsense", read));
}

TEST(Journal, IsWrittenAsItGrows) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "backplane_journal_test";
  std::filesystem::remove_all(folder);
  Journal journal(folder);
  journal.add({"a", State::kPass, "", 0, 1});
  std::ifstream file(folder / "journal.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(nlohmann::json::parse(line)["case"], "a");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace backplane::conform
