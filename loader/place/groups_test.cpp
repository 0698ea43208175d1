// SPDX-License-Identifier: Apache-2.0
#include "place/groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "place/partial.h"
#include "place/testing.h"

namespace backplane {
namespace {

using namespace placement_test;

TEST(Groups, AtomicGroupsAreInOneIslandOrNotUsed) {
  std::mt19937 random(13);
  int taken = 0;
  for (int round = 0; round < 2000; ++round) {
    const FakeDevices devices(2 + random() % 2, random() % 2 * 20'000);
    const uint32_t nodes = 10 + random() % 40;
    const model::Graph graph = random_graph(random, nodes);
    auto coverage = random_coverage(random, devices, nodes);
    for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
    for (uint32_t d = 1; d < coverage.size(); ++d)
      for (uint32_t first = random() % 5; first + 8 < nodes; first += random() % 12) {
        NodeGroup group{.atomic = random() % 3 > 0, .seconds = static_cast<double>(1 + random() % 50) * 1e-6};
        for (uint32_t i = first; i < first + 8; ++i)
          if (random() % 2) group.nodes.push_back(i), allow(coverage[d].nodes[i], 50);
        if (!group.nodes.empty()) coverage[d].groups.push_back(group);
      }
    const auto placement = place(graph, coverage, {});
    ASSERT_TRUE(placement.ok()) << placement.status().text();
    expect_legal(graph, *placement);
    // Checks that each node that a device supports only in a group is in a complete group.
    for (uint32_t i = 0; i < nodes; ++i) {
      const uint32_t d = placement->device[i];
      bool bound = false, whole = false;
      for (const NodeGroup& group : coverage[d].groups) {
        if (!group.atomic || !std::ranges::binary_search(group.nodes, i)) continue;
        bound = true;
        whole = whole || std::all_of(group.nodes.begin(), group.nodes.end(),
                                     [&](uint32_t k) { return placement->island[k] == placement->island[i]; });
      }
      ASSERT_TRUE(!bound || whole) << "round " << round << " node " << i;
      taken += bound;
    }
  }
  EXPECT_GT(taken, 2000);
}

TEST(Groups, AGroupCostsItsOwnEstimateNotThatOfItsNodes) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(6);
  auto coverage = devices.coverage(6);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 20);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 21);
  coverage[1].groups = {{.nodes = {1, 2, 3, 4}, .atomic = true, .seconds = 10e-6, .name = "block"}};
  const auto placement = place(graph, coverage, {});
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, 1, 1, 1, 1, 0}));
  EXPECT_NEAR(placement->cost.compute, 50e-6, 1e-12);
  coverage[1].groups[0].seconds = 70e-6;  // device 0 takes 80 µs, the group 90 µs with its two copies of 10 µs each
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 1u);
  // This group is not atomic: the device is faster if it runs all nodes of the group, but can run each of them alone.
  coverage[1].groups[0].atomic = false;
  coverage[1].groups[0].seconds = 10e-6;
  EXPECT_NEAR(place(graph, coverage, {})->cost.compute, 50e-6, 1e-12);
}

TEST(Groups, ANonConvexGroupIsNotUsed) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(3);
  auto coverage = devices.coverage(3);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
  coverage[1].groups = {{.nodes = {0, 2}, .atomic = true, .seconds = 1e-6}};
  const auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->device[0], 0u);
  EXPECT_EQ(placement->device[2], 0u);
  const auto pinned = place(graph, coverage, {.pins = {{"n0", "b"}}});
  EXPECT_EQ(pinned.status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(pinned.status().text(),
            "node 'n0' (Op) is supported by no device that the session allows for it: "
            "a (policy): pin 'n0' puts the node on 'b'; "
            "b (group): only in a group that cannot be placed on it as a whole");
}

// Nodes that are supported only in an impossible group are not placed; place_partly places the others.
TEST(Groups, NodesOfAGroupThatCannotBeHadAreReportedAsUncovered) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(5);
  auto coverage = devices.coverage(5);
  for (DeviceCoverage& device : coverage)
    for (uint32_t i : {0u, 3u, 4u}) allow(device.nodes[i]);
  allow(coverage[1].nodes[2]);
  coverage[0].groups = {{.nodes = {1, 3}, .atomic = true}};  // node 1 is refused, so node 3 goes to the other device
  coverage[1].groups = {{.nodes = {1, 2}, .atomic = true}};  // impossible too, and no other device supports node 2
  EXPECT_EQ(place(graph, coverage, {}).status().code(), BP_UNSUPPORTED);
  const auto placement = place_partly(graph, coverage, {});
  ASSERT_TRUE(placement.ok()) << placement.status().text();
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, BP_NONE, BP_NONE, 1, placement->device[4]}));
  EXPECT_NE(placement->device[4], BP_NONE);
}

}  // namespace
}  // namespace backplane
