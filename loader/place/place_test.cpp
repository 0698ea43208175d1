// SPDX-License-Identifier: Apache-2.0
#include "place/place.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "place/cut.h"

namespace backplane {
namespace {

// Devices that exist only as names: placement never calls them.
struct World {
  explicit World(std::vector<std::string> names) {
    backend.id = "fake";
    for (const std::string& name : names) {
      bp_device_info_t info{};
      devices.push_back(std::make_unique<Device>(backend, static_cast<uint32_t>(devices.size() + 1), name, info));
    }
  }

  std::vector<DeviceCoverage> coverage(size_t nodes) const {
    std::vector<DeviceCoverage> all;
    for (const auto& device : devices) {
      DeviceCoverage& one = all.emplace_back();
      one.device = device.get();
      one.nodes.resize(nodes);
      for (NodeVerdict& verdict : one.nodes) verdict.detail = "not listed";
    }
    return all;
  }

  Backend backend;
  std::vector<std::unique_ptr<Device>> devices;
};

void allow(NodeVerdict& verdict) { verdict.answer = BP_ANSWER_YES; }

// Nodes with one output each; node i reads some of the values before it.
model::Graph random_graph(std::mt19937& random, uint32_t nodes) {
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x"));
  for (uint32_t i = 0; i < nodes; ++i) {
    model::Node node;
    node.op_type = "Op";
    node.name = "n" + std::to_string(i);
    node.id = i + 1;
    for (uint32_t k = 0; k < 1 + random() % 3; ++k) node.inputs.push_back(random() % graph.values.size());
    node.outputs.push_back(graph.add_value("v" + std::to_string(i)));
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  return graph;
}

// Islands in their order: each reads only what came in, weights, and what earlier islands made. That order existing is what
// convex and acyclic mean together.
void expect_legal(const model::Graph& graph, const Placement& placement) {
  std::set<model::ValueId> there(graph.inputs.begin(), graph.inputs.end());
  size_t nodes = 0;
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    const Island& island = placement.islands[k];
    for (model::ValueId value : island.inputs) EXPECT_TRUE(there.contains(value)) << "island " << k;
    std::set<model::ValueId> inside(island.inputs.begin(), island.inputs.end());
    for (uint32_t i : island.nodes) {
      EXPECT_EQ(placement.device[i], island.device);
      EXPECT_EQ(placement.island[i], k);
      for (model::ValueId value : graph.nodes[i].inputs) EXPECT_TRUE(inside.contains(value));
      for (model::ValueId value : graph.nodes[i].outputs) inside.insert(value);
      ++nodes;
    }
    for (model::ValueId value : island.outputs) EXPECT_TRUE(inside.contains(value));
    there.insert(island.outputs.begin(), island.outputs.end());
  }
  EXPECT_EQ(nodes, graph.nodes.size());
  for (model::ValueId value : graph.outputs) EXPECT_TRUE(there.contains(value));
}

TEST(Place, RandomGraphsAndMasksGiveLegalIslands) {
  const World world({"a", "b", "c"});
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const model::Graph graph = random_graph(random, 1 + random() % 60);
    auto coverage = world.coverage(graph.nodes.size());
    std::vector<uint32_t> parts(graph.nodes.size());
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (DeviceCoverage& device : coverage)
        if (random() % 2) allow(device.nodes[i]);
      allow(coverage[random() % 3].nodes[i]);
      parts[i] = random() % 4 == 0;
    }
    auto placement = place(graph, coverage, {}, parts);
    ASSERT_TRUE(placement.ok()) << placement.status().text();
    expect_legal(graph, *placement);
  }
}

TEST(Place, OneDeviceGivesOneIsland) {
  const World world({"a"});
  std::mt19937 random(3);
  const model::Graph graph = random_graph(random, 50);
  auto coverage = world.coverage(50);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict);
  auto placement = place(graph, coverage, {}, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->islands.size(), 1u);
}

TEST(Place, ANodeThatNobodyTakesIsNamedWithEveryReason) {
  const World world({"a", "b"});
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
  for (DeviceCoverage& device : coverage)
    for (size_t i = 0; i < 3; ++i) allow(device.nodes[i]);
  const auto placement = place(graph, coverage, {}, {});
  ASSERT_FALSE(placement.ok());
  EXPECT_EQ(placement.status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(placement.status().node(), 4u);
  const std::string text(placement.status().text());
  for (const char* word : {"n3", "Op", "a (operator): not listed", "b (operator): not listed"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(Place, ForbidAsksTheFirstDeviceAlone) {
  const World world({"a", "b"});
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict);
  EXPECT_TRUE(place(graph, coverage, {}, {}).ok());
  EXPECT_FALSE(place(graph, coverage, {.fallback = BP_FALLBACK_FORBID}, {}).ok());
}

TEST(Place, PinsCountBeforePreferenceAndMustBePossible) {
  const World world({"a", "b"});
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
  for (DeviceCoverage& device : coverage)
    for (NodeVerdict& verdict : device.nodes) allow(verdict);
  auto placement = place(graph, coverage, {.pins = {{"n2", "b"}}}, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(placement->pin[2], "n2");
  coverage[1].nodes[2] = {};
  EXPECT_EQ(place(graph, coverage, {.pins = {{"n2", "b"}}}, {}).status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(place(graph, coverage, {.pins = {{"op=O*", "nobody"}}}, {}).status().code(), BP_NOT_FOUND);
}

TEST(Place, MoreIslandsThanAllowedIsAnError) {
  const World world({"a", "b"});
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x"));
  for (uint32_t i = 0; i < 6; ++i) {
    model::Node node;
    node.op_type = "Op";
    node.inputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
    node.outputs.push_back(graph.add_value("v" + std::to_string(i)));
    graph.nodes.push_back(std::move(node));
  }
  auto coverage = world.coverage(6);
  for (size_t i = 0; i < 6; ++i) allow(coverage[i % 2].nodes[i]);
  EXPECT_EQ(place(graph, coverage, {}, {})->islands.size(), 6u);
  EXPECT_EQ(place(graph, coverage, {.max_islands = 5}, {}).status().code(), BP_UNSUPPORTED);
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("a*c?", "abbcd"));
  EXPECT_TRUE(glob("**x", "aax"));
  EXPECT_FALSE(glob("a*c", "abcb"));
  EXPECT_FALSE(glob("?", ""));
  EXPECT_FALSE(glob("", "a"));
}

}  // namespace
}  // namespace backplane
