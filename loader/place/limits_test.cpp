// SPDX-License-Identifier: Apache-2.0
#include "place/limits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "place/testing.h"

namespace backplane {
namespace {

using namespace placement_test;

TEST(Limits, ABoundOnIslandsIsMetByDissolvingIslands) {
  const FakeDevices devices(2);
  const model::Graph graph = chain(20);
  auto coverage = devices.coverage(20);
  for (uint32_t i = 0; i < 20; ++i) {
    allow(coverage[0].nodes[i], i % 2 ? 100 : 1);
    allow(coverage[1].nodes[i], i % 2 ? 1 : 100);
  }
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 20u);
  for (uint32_t bound : {10u, 3u, 1u}) {
    for (uint32_t fallback : {BP_FALLBACK_ALLOW, BP_FALLBACK_PREFER}) {
      const auto placement = place(graph, coverage, {.fallback = fallback, .max_islands = bound});
      ASSERT_TRUE(placement.ok()) << placement.status().text();
      EXPECT_LE(placement->islands.size(), bound);
    }
  }
}

TEST(Limits, LargeIslandsAreCutAndAtomicGroupsAreNot) {
  const FakeDevices devices(1);
  const model::Graph graph = chain(20);
  auto coverage = devices.coverage(20);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict);
  coverage[0].groups = {{.nodes = {2, 3, 4, 5, 6, 7}, .atomic = true, .seconds = 1e-6}};
  for (uint32_t fallback : {BP_FALLBACK_ALLOW, BP_FALLBACK_PREFER, BP_FALLBACK_FORBID}) {
    const auto placement = place(graph, coverage, {.fallback = fallback, .max_island_nodes = 4});
    ASSERT_TRUE(placement.ok()) << placement.status().text();
    expect_legal(graph, *placement);
    std::vector<size_t> sizes;
    for (const Island& island : placement->islands) sizes.push_back(island.nodes.size());
    EXPECT_EQ(sizes, (std::vector<size_t>{8, 4, 4, 4}));
  }
  EXPECT_EQ(place(graph, coverage, {.max_islands = 3, .max_island_nodes = 4}).status().code(), BP_UNSUPPORTED);
}

// A chain in which each node has its own weight of 1000 floats and reads one more weight of that size, which all nodes
// share.
TEST(Limits, ADeviceGetsNoMoreThanItsMemoryHolds) {
  model::Graph graph = chain(10);
  const model::ValueId shared = graph.add_value("shared", floats(1000));
  graph.values[shared].weight = 0;
  for (model::Node& node : graph.nodes) {
    const model::ValueId own = graph.add_value("own" + node.name, floats(1000));
    graph.values[own].weight = 0;
    for (const model::ValueId weight : {own, shared}) node.inputs.push_back(weight);
  }
  // Enough memory for seven nodes' weights, the shared weight, and a node's input and output.
  const FakeDevices devices(2, 0, 8 * 4000 + 2 * 40);
  auto coverage = devices.coverage(10);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
  std::vector<uint32_t> seven(10, 0);
  std::fill_n(seven.begin(), 7, 1);
  EXPECT_EQ(place(graph, coverage, {})->device, seven);
  EXPECT_EQ(place(graph, coverage, {})->no_room, (std::vector<NoRoom>{{7, 1}, {8, 1}, {9, 1}}));
  std::ranges::reverse(coverage);
  for (uint32_t& device : seven) device = 1 - device;
  EXPECT_EQ(place(graph, coverage, {.fallback = BP_FALLBACK_PREFER})->device, seven);
  for (uint32_t i = 7; i < 10; ++i) coverage[1].nodes[i].answer = BP_ANSWER_NO;
  EXPECT_EQ(place(graph, coverage, {})->device[9], 0u);  // nodes that no other device supports stay; others move
  const auto full = place(graph, coverage, {.fallback = BP_FALLBACK_FORBID});
  EXPECT_EQ(full.status().code(), BP_RESOURCE_EXHAUSTED);
  EXPECT_NE(full.status().text().find("'b' has 32080 bytes"), std::string::npos) << full.status().text();
}

// The scratch memory of a node that does not fit on a device does not count for the device's other nodes.
TEST(Limits, ANodeThatNeedsTooMuchLeavesTheOthersWhereTheyAre) {
  const model::Graph graph = chain(10);
  const FakeDevices devices(2, 0, 4000);
  auto coverage = devices.coverage(10);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
  coverage[1].nodes[3].bytes = 5000;
  const auto placed = place(graph, coverage, {});
  EXPECT_EQ(placed->no_room, (std::vector<NoRoom>{{3, 1}}));
  EXPECT_EQ(placed->device, (std::vector<uint32_t>{1, 1, 1, 0, 1, 1, 1, 1, 1, 1}));
}

// What is not known does not exclude a device: a run with small extents may fit.
TEST(Limits, AnExtentThatIsKnownAtRunTimeCountsWithItsLowerBound) {
  model::Graph graph = chain(10);
  graph.symbols = {{.name = "n", .min = 10, .expected = 64}};
  for (model::Value& value : graph.values) value.type.dims = {{-1, 0, 0}};
  auto placed_on = [&](uint64_t memory_bytes) {
    const FakeDevices devices(2, 0, memory_bytes);
    auto coverage = devices.coverage(10);
    for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
    for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
    return place(graph, coverage, {})->device;
  };
  EXPECT_EQ(placed_on(80), std::vector<uint32_t>(10, 1));
  EXPECT_EQ(placed_on(79), std::vector<uint32_t>(10, 0));
}

TEST(Limits, MoreIslandsThanAllowedIsAnError) {
  const FakeDevices devices(2);
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x"));
  for (uint32_t i = 0; i < 6; ++i) {
    model::Node node;
    node.op_type = "Op";
    node.inputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
    node.outputs.push_back(graph.add_value("v" + std::to_string(i)));
    graph.nodes.push_back(std::move(node));
  }
  auto coverage = devices.coverage(6);
  for (size_t i = 0; i < 6; ++i) allow(coverage[i % 2].nodes[i]);
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 6u);
  EXPECT_EQ(place(graph, coverage, {.max_islands = 5}).status().code(), BP_UNSUPPORTED);
}

}  // namespace
}  // namespace backplane
