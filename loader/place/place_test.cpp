// SPDX-License-Identifier: Apache-2.0
#include "place/place.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "place/glob.h"
#include "place/testing.h"

namespace backplane {
namespace {

using namespace placement_test;

TEST(Place, RandomGraphsAndMasksGiveLegalIslandsThatCostNoMoreThanGreedyOrOneDevice) {
  std::mt19937 random(11);
  for (int round = 0; round < 10'000; ++round) {
    const FakeDevices devices(2 + random() % 3, random() % 2 * 20'000);
    const uint32_t nodes = 5 + random() % (round % 20 ? 60 : 196);
    const model::Graph graph = random_graph(random, nodes);
    auto coverage = random_coverage(random, devices, nodes);
    for (uint32_t i = 0; i < nodes; ++i)
      for (DeviceCoverage& device : coverage) device.nodes[i].part = round % 5 == 0 && random() % 4 == 0;
    Policy policy;
    const uint32_t pinned = random() % nodes;
    for (uint32_t d = 0; d < coverage.size(); ++d)
      if (round % 3 == 0 && coverage[d].nodes[pinned].usable())
        policy.pins = {{"n" + std::to_string(pinned), std::string(1, 'a' + d)}};
    const auto placement = place(graph, coverage, policy);
    ASSERT_TRUE(placement.ok()) << placement.status().text();
    expect_legal(graph, *placement);
    for (uint32_t i = 0; i < nodes; ++i) ASSERT_TRUE(coverage[placement->device[i]].nodes[i].usable());
    if (!policy.pins.empty()) {
      EXPECT_EQ(coverage[placement->device[pinned]].device->name(), policy.pins[0].device);
    }
    for (const Island& island : placement->islands)
      for (uint32_t i : island.nodes)
        EXPECT_EQ(coverage[island.device].nodes[i].part, coverage[island.device].nodes[island.nodes[0]].part);

    policy.fallback = BP_FALLBACK_PREFER;
    EXPECT_LE(placement->cost.total(), place(graph, coverage, policy)->cost.total() * (1 + 1e-9));
    for (const DeviceCoverage& device : coverage) {
      const auto alone = place(graph, {device}, {});
      if (alone.ok() && policy.pins.empty()) {
        EXPECT_LE(placement->cost.total(), alone->cost.total() * (1 + 1e-9));
      }
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Place, AnUnprofitableIslandStaysAndTheSavingIsNamed) {
  const FakeDevices devices(2, 5'000);
  const model::Graph graph = chain(9);
  auto coverage = devices.coverage(9);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 20);
  allow(coverage[1].nodes[4], 2);
  const auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->islands.size(), 1u);
  const auto pinned = place(graph, coverage, {.pins = {{"name=n4", "b"}}});
  ASSERT_TRUE(pinned.ok());
  EXPECT_EQ(pinned->islands.size(), 3u);
  EXPECT_TRUE(pinned->missed_speedups.empty());
  ASSERT_EQ(placement->missed_speedups.size(), 1u);
  EXPECT_EQ(placement->missed_speedups[0].nodes, std::vector<uint32_t>{4});
  EXPECT_EQ(placement->missed_speedups[0].instead_of, 1u);
  EXPECT_NEAR(placement->missed_speedups[0].seconds, pinned->cost.total() - placement->cost.total(), 1e-12);
  // A node moves if the total gets cheaper.
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 200);
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 3u);
  EXPECT_TRUE(place(graph, coverage, {})->missed_speedups.empty());
}

TEST(Place, ADeviceWithoutCostEstimatesDoesNotWinByThat) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(4);
  auto coverage = devices.coverage(4);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 0.5);
  for (NodeVerdict& verdict : coverage[1].nodes) verdict.answer = BP_ANSWER_YES;
  EXPECT_EQ(place(graph, coverage, {})->device, std::vector<uint32_t>(4, 0));
  std::ranges::reverse(coverage);
  EXPECT_EQ(place(graph, coverage, {})->device, std::vector<uint32_t>(4, 1));
  EXPECT_EQ(place(graph, coverage, {.fallback = BP_FALLBACK_PREFER})->device, std::vector<uint32_t>(4, 0));
}

TEST(Place, MeasuredCopiesTakePrecedenceOverEstimates) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(3, 1 << 20);
  auto coverage = devices.coverage(3);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 3000);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1000);
  // Moving saves 6 ms, but two copies of 4 MB at 1 GB/s take 8.4 ms.
  EXPECT_EQ(place(graph, coverage, {})->islands[0].device, 0u);
  coverage[1].profile = std::make_shared<Profile>();
  for (const auto& [from, to] : {std::pair("host", "b"), std::pair("b", "host")}) {
    coverage[1].profile->set(profile_key_of_copy(from, to, kSmallCopy), 5e-6);
    coverage[1].profile->set(profile_key_of_copy(from, to, kLargeCopy), 405e-6);
  }
  const auto placement = place(graph, coverage, {});
  EXPECT_EQ(placement->islands[0].device, 1u);
  ASSERT_EQ(placement->copies.size(), 2u);
  EXPECT_EQ(placement->copies[0].source, Source::kMeasured);
  EXPECT_NEAR(placement->copies[0].seconds, 405e-6, 1e-9);
}

TEST(Place, OneDeviceMakesOneIsland) {
  const FakeDevices devices(1);
  std::mt19937 random(3);
  const model::Graph graph = random_graph(random, 50);
  auto coverage = devices.coverage(50);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict);
  auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->islands.size(), 1u);
}

TEST(Place, AnUnsupportedNodeIsNamedWithEveryReason) {
  const FakeDevices devices(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = devices.coverage(4);
  for (DeviceCoverage& device : coverage)
    for (size_t i = 0; i < 3; ++i) allow(device.nodes[i]);
  const auto placement = place(graph, coverage, {});
  ASSERT_FALSE(placement.ok());
  EXPECT_EQ(placement.status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(placement.status().node(), 4u);
  const std::string text(placement.status().text());
  for (const char* word : {"n3", "Op", "a (operator): not listed", "b (operator): not listed"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(Place, ForbidAsksTheFirstDeviceAlone) {
  const FakeDevices devices(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = devices.coverage(4);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict);
  EXPECT_TRUE(place(graph, coverage, {}).ok());
  const auto forbidden = place(graph, coverage, {.fallback = BP_FALLBACK_FORBID});
  EXPECT_EQ(forbidden.status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(forbidden.status().text(),
            "node 'n0' (Op) is supported by no device that the session allows for it: a (operator): not listed; "
            "b (policy): the session forbids devices other than 'a'");
}

TEST(Place, PinsCountBeforePreferenceAndMustBePossible) {
  const FakeDevices devices(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = devices.coverage(4);
  for (DeviceCoverage& device : coverage)
    for (NodeVerdict& verdict : device.nodes) allow(verdict);
  auto placement = place(graph, coverage, {.fallback = BP_FALLBACK_PREFER, .pins = {{"n2", "b"}}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(placement->pin[2], "n2");
  coverage[1].nodes[2] = {};
  EXPECT_EQ(place(graph, coverage, {.pins = {{"n2", "b"}}}).status().code(), BP_UNSUPPORTED);
  for (const char* const wrong : {"unknown", "b:0", "fake:1:0", "fake", "fake:2", ""}) {
    const Status status = place(graph, coverage, {.pins = {{"op=O*", wrong}}}).status();
    EXPECT_EQ(status.code(), BP_NOT_FOUND) << wrong;
    EXPECT_NE(status.text().find("the session's devices: a, b"), std::string::npos) << status.text();
  }
  allow(coverage[1].nodes[2]);
  EXPECT_EQ(place(graph, coverage, {.pins = {{"n2", "fake:1"}}})->device[2], 1u);  // the device's number in its backend
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("a*c?", "abbcd"));
  EXPECT_TRUE(glob("**x", "aax"));
  EXPECT_FALSE(glob("a*c", "abcb"));
  EXPECT_FALSE(glob("?", ""));
  EXPECT_FALSE(glob("", "a"));
}

TEST(Place, EndsWhenItsLimitsAreReached) {
  std::mt19937 random(3);
  const FakeDevices devices(3, 20'000);
  const model::Graph graph = random_graph(random, 100);
  const auto coverage = random_coverage(random, devices, 100);
  const auto placed = [&](ImportLimits budget, bool cancelled) {
    Budget one(budget, 0);
    return place(graph, coverage, {}, {&one, [=] { return cancelled; }}).status();
  };
  EXPECT_TRUE(placed({.bytes = 1 << 20, .seconds = 600}, false).ok());
  const Status large = placed({.bytes = 100, .seconds = 600}, false);
  EXPECT_EQ(large.code(), BP_RESOURCE_EXHAUSTED);
  EXPECT_NE(large.text().find("loader.import_bytes"), std::string::npos) << large.text();
  const Status late = placed({.bytes = 1 << 20, .seconds = 1e-9}, false);
  EXPECT_EQ(late.code(), BP_TIMED_OUT);
  EXPECT_NE(late.text().find("loader.import_seconds"), std::string::npos) << late.text();
  EXPECT_EQ(placed({.bytes = 1 << 20, .seconds = 600}, true).code(), BP_CANCELLED);
}

}  // namespace
}  // namespace backplane
