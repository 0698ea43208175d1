// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace backplane::conform {
namespace {

using ::testing::HasSubstr;

Summary sum(const std::vector<Result>& results) {
  return summarize(results, 0);
}
std::string fault(const std::vector<Result>& results, uint64_t cases, std::vector<std::string> profiles = {}) {
  return outcome({.profiles = std::move(profiles), .cases = cases}, results).fault;
}

TEST(Summary, CountsByState) {
  const Summary summary = sum({{"a", State::kPass, "", 0, 1},
                               {"b", State::kPass, "", 0, 0},
                               {"c", State::kFail, "x", 0, 1},
                               {"d", State::kNotSupported, "y", 0, 0},
                               {"e", State::kExpectedFail, "z", 0, 0}});
  EXPECT_EQ(summary[State::kPass], 2u);
  EXPECT_EQ(summary.no_node, 1u);
  EXPECT_EQ(summary.executed, 2u);
  EXPECT_TRUE(summary.has_failures());
  const auto json = nlohmann::json::parse(summary.to_json());
  EXPECT_EQ(json["passed"], 2);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["not_supported"], 1);
  EXPECT_EQ(json["expected_fail"], 1);
  EXPECT_EQ(json["total"], 5);
  EXPECT_TRUE(json["levels"].is_array());
}

TEST(Summary, ADeviceThatRunsNothingDoesNotPass) {
  const Summary summary = sum({{"a", State::kPass, "", 0, 0}, {"b", State::kNotSupported, "", 0, 0}});
  EXPECT_EQ(summary[State::kPass], 0u);
  EXPECT_EQ(summary[State::kMistrusted], 1u);
  EXPECT_EQ(summary.executed, 0u);
}

TEST(Summary, OnlySomeStatesAreFailures) {
  for (const State state : {State::kPass, State::kNotSupported, State::kWaived, State::kExpectedFail})
    EXPECT_FALSE(sum({{"a", State::kPass, "", 0, 1}, {"b", state}}).has_failures()) << name_of(state);
  for (const State state :
       {State::kFail, State::kCrash, State::kTimeout, State::kMistrusted, State::kInfraError, State::kUnexpectedPass})
    EXPECT_TRUE(sum({{"a", State::kPass, "", 0, 1}, {"b", state}}).has_failures()) << name_of(state);
}

TEST(RunOutcome, ARunWithoutExecutedCasesFails) {
  EXPECT_THAT(fault({}, 0), HasSubstr("no node ran"));
  EXPECT_THAT(fault({{"abi/x", State::kPass}}, 1), HasSubstr("no node ran"));
  EXPECT_EQ(fault({{"ops/x", State::kPass, "", 0, 1}}, 1), "");
}

TEST(RunOutcome, ACaseWithTwoResultsCountsOnce) {
  EXPECT_THAT(fault({{"ops/x", State::kPass, "", 0, 1}, {"ops/x", State::kPass, "", 0, 1}}, 2),
              HasSubstr("1 of 2 cases ran"));
}

TEST(RunOutcome, AnIncompleteRunFails) {
  EXPECT_EQ(fault({{"ops/x", State::kPass, "", 0, 1}}, 3), "1 of 3 cases ran");
  EXPECT_THAT(fault({{"ops/x", State::kPass, "", 0, 1}, {"(end of process)", State::kCrash}}, 1),
              HasSubstr("1 case failed"));
}

TEST(RunOutcome, AnUnmetClaimFails) {
  const std::vector<Result> results = {{"ops/x", State::kPass, "", 0, 1}, {"ops/y", State::kNotSupported}};
  EXPECT_EQ(fault(results, 2), "");
  EXPECT_THAT(fault(results, 2, {"core"}), HasSubstr("not supported"));
}

}  // namespace
}  // namespace backplane::conform
