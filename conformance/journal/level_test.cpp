// SPDX-License-Identifier: Apache-2.0
#include "journal/level.h"

#include <gmock/gmock.h>

namespace backplane::conform {
namespace {

std::string reached(const std::vector<Result>& results, const LevelRules& rules = {}) {
  std::string names;
  for (const Level& level : levels(results, rules)) names += level.reached ? level.name : "";
  return names;
}

std::vector<Result> good() {
  std::vector<Result> results;
  for (const char* group : {"abi", "coverage", "programs", "ops", "graph", "determinism", "negative", "robustness",
                            "memory", "sync", "cache", "weights", "concurrency", "lifecycle"}) {
    results.push_back({std::string(group) + "/x", State::kPass});
  }
  return results;
}

TEST(Level, NeedsAPassInEveryGroup) {
  EXPECT_EQ(reached(good()), "L0L1L2L3");
  EXPECT_EQ(reached({}), "");
  for (size_t i = 0; i < good().size(); ++i) {
    std::vector<Result> results = good();
    results.erase(results.begin() + static_cast<int64_t>(i));
    EXPECT_NE(reached(results), "L0L1L2L3") << good()[i].name;
  }
}

TEST(Level, IsLostByOneBadResult) {
  for (const State state : {State::kFail, State::kCrash, State::kTimeout, State::kMistrusted, State::kInfraError}) {
    std::vector<Result> results = good();
    results.push_back({"lifecycle/y", state});
    EXPECT_EQ(reached(results), "L0L1L2");
    results.push_back({"abi/y", state});
    EXPECT_EQ(reached(results), "");
  }
}

TEST(Level, ABackendThatRefusesAllIsOnlyLoadable) {
  std::vector<Result> results = good();
  for (Result& result : results) {
    if (result.name == "ops/x") result.state = State::kNotSupported;
  }
  EXPECT_EQ(reached(results), "L0");
}

TEST(Level, AMissingOperatorOfAClaimedProfileFails) {
  std::vector<Result> results = good();
  results.push_back({"ops/y", State::kNotSupported});
  EXPECT_EQ(reached(results), "L0L1L2L3");
  EXPECT_EQ(reached(results, {.claims_profile = true}), "L0");
  results = good();
  for (Result& result : results) {
    if (result.name == "determinism/x") result.state = State::kNotSupported;
  }
  EXPECT_EQ(reached(results, {.claims_profile = true}), "L0L1L2L3");
}

// For example, `extended` and `quant` have no graph cases, so L2 of these profiles depends on the other groups only.
TEST(Level, AGroupWithoutACaseInTheProfileIsNotRequired) {
  std::vector<Result> results = good();
  std::erase_if(results, [](const Result& result) { return result.name == "graph/x"; });
  EXPECT_EQ(reached(results), "L0L1");
  EXPECT_EQ(reached(results, {.claims_profile = true}), "L0L1L2L3");
  results.push_back({"graph/y", State::kNotSupported});
  EXPECT_EQ(reached(results, {.claims_profile = true}), "L0L1");
}

TEST(Level, OnlyAcceptedNarrowWaiversExcuseAFailure) {
  std::vector<Result> results = good();
  results.push_back({.name = "ops/y", .state = State::kWaived, .exception = "ops/Softmax/*"});
  EXPECT_EQ(reached(results), "L0");
  EXPECT_EQ(reached(results, {.accepts_waivers = true}), "L0L1L2L3");
  for (const char* wide : {"*", "ops/*", "*/Softmax/float", "ops/S*/float/x", "ops/[A-Z]*", "o?s/Softmax/float", ""}) {
    results.back().exception = wide;
    EXPECT_EQ(reached(results, {.accepts_waivers = true}), "L0") << wide;
  }
  results.back().state = State::kExpectedFail;
  EXPECT_EQ(reached(results, {.accepts_waivers = true}), "L0");
}

TEST(Level, TheWholeListMustRun) {
  const std::vector<Result> results = good();
  const auto count = [&](const Header& header) {
    size_t reached = 0;
    for (const Level& level : levels(header, results, true)) reached += level.reached;
    return reached;
  };
  const Header whole = {.cases = results.size()};
  Header filtered = whole, sharded = whole, cut = whole;
  filtered.filter = "*";
  sharded.shard = {1, 2};
  cut.cases += 1;
  EXPECT_EQ(count(whole), 4u);
  EXPECT_THAT(conditions(whole, results), testing::IsEmpty());
  for (const Header& header : {filtered, sharded, cut}) {
    EXPECT_EQ(count(header), 0u);
    EXPECT_THAT(conditions(header, results), testing::SizeIs(1));
  }
}

TEST(Level, ACaseWithTwoResultsCountsOnce) {
  std::vector<Result> results = good();
  const Header header = {.cases = results.size() + 1};
  results.push_back(results.back());
  for (const Level& level : levels(header, results, false)) EXPECT_FALSE(level.reached) << level.name;
}

// Folders of test data may have the names of groups.
TEST(Level, TestDataHasNone) {
  for (const char* selection : {"onnx", "vendor"}) {
    const Header header = {.selection = selection, .cases = good().size()};
    for (const Level& level : levels(header, good(), false)) EXPECT_FALSE(level.reached) << level.name;
  }
}

TEST(Level, ConditionsNameEveryWaiverAndExpectation) {
  std::vector<Result> results = good();
  const auto add = [&](State state, const char* pattern) {
    const std::string name = "ops/y" + std::to_string(results.size());
    results.push_back({.name = name, .state = state, .was = State::kFail, .exception = pattern});
  };
  add(State::kWaived, "ops/Softmax/*");
  add(State::kWaived, "ops/Softmax/*");
  add(State::kWaived, "*");
  add(State::kExpectedFail, "ops/Erf/*");
  EXPECT_THAT(conditions({.cases = results.size()}, results),
              testing::UnorderedElementsAre("2 failures are waived by 'ops/Softmax/*'",
                                            "1 failure is waived by '*', which is too wide to reach a level",
                                            "1 failure is declared as 'ops/Erf/*'"));
}

TEST(Level, InaccurateIsFunctional) {
  std::vector<Result> results = good();
  results.push_back({.name = "ops/y", .state = State::kFail, .close = true});
  EXPECT_EQ(reached(results), "L0L1");
}

}  // namespace
}  // namespace backplane::conform
