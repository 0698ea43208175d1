// SPDX-License-Identifier: Apache-2.0
#include "journal/level.h"

#include <gmock/gmock.h>

namespace backplane::conform {
namespace {

std::string reached(const std::vector<Result>& results, bool claims_profile = false) {
  std::string names;
  for (const Level& level : levels(results, claims_profile)) names += level.reached ? level.name : "";
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

TEST(Level, ABackendThatRefusesAllIsLoadableAndNoMore) {
  std::vector<Result> results = good();
  for (Result& result : results) {
    if (result.name == "ops/x") result.state = State::kNotSupported;
  }
  EXPECT_EQ(reached(results), "L0");
}

TEST(Level, WhatAClaimedProfileLacksIsAFailure) {
  std::vector<Result> results = good();
  results.push_back({"ops/y", State::kNotSupported});
  EXPECT_EQ(reached(results, false), "L0L1L2L3");
  EXPECT_EQ(reached(results, true), "L0");
  results = good();
  for (Result& result : results) {
    if (result.name == "determinism/x") result.state = State::kNotSupported;
  }
  EXPECT_EQ(reached(results, true), "L0L1L2L3");
}

TEST(Level, InaccurateIsFunctional) {
  std::vector<Result> results = good();
  results.push_back({.name = "ops/y", .state = State::kFail, .close = true});
  EXPECT_EQ(reached(results), "L0L1");
}

}  // namespace
}  // namespace backplane::conform
