// SPDX-License-Identifier: Apache-2.0
#include "place/place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "discover/negotiate.h"

namespace backplane {
namespace {

// Devices that exist only as names and rates: placement never calls them. The first works on host memory, the others
// have a memory of their own.
struct World {
  explicit World(uint32_t count, uint64_t launch_ns = 0, uint64_t memory_bytes = 0) {
    backend.id = "fake";
    backend.tables->plugin.memory = &backend.tables->memory;
    for (uint32_t d = 0; d < count; ++d) {
      bp_device_info_t info{};
      info.index = d;
      info.kind = d == 0 ? BP_DEVICE_CPU : BP_DEVICE_GPU;
      info.launch_ns = launch_ns;
      info.link_bandwidth = 1'000'000'000;
      info.memory_bytes = memory_bytes;
      devices.push_back(std::make_unique<Device>(backend, d + 1, std::string(1, static_cast<char>('a' + d)), info));
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

void allow(NodeVerdict& verdict, double microseconds = 1) {
  verdict.answer = BP_ANSWER_YES;
  verdict.seconds = microseconds * 1e-6;
}

model::Type floats(int64_t count) {
  return {.kind = BP_KIND_TENSOR, .dtype = BP_DTYPE_FLOAT, .rank = 1, .dims = {{count, BP_NONE, 0}}};
}

model::Node& add_node(model::Graph& graph, std::vector<model::ValueId> inputs, uint32_t outputs, int64_t elements) {
  model::Node& node = graph.nodes.emplace_back();
  node.op_type = "Op";
  node.name = "n" + std::to_string(graph.nodes.size() - 1);
  node.id = graph.nodes.size();
  node.inputs = std::move(inputs);
  for (uint32_t k = 0; k < outputs; ++k)
    node.outputs.push_back(graph.add_value("v" + std::to_string(graph.values.size()), floats(elements)));
  return node;
}

// Node i reads some of the values before it; values are of 4 bytes to 160 kB, which at 1 GB/s is up to 160 µs beside
// the 10 of a copy.
model::Graph random_graph(std::mt19937& random, uint32_t nodes) {
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", floats(1000)));
  const uint32_t window = 1 + random() % 20;
  for (uint32_t i = 0; i < nodes; ++i) {
    std::vector<model::ValueId> inputs;
    const uint32_t there = static_cast<uint32_t>(graph.values.size());
    for (uint32_t k = 0; k < 1 + random() % 3; ++k) inputs.push_back(there - 1 - random() % std::min(there, window));
    add_node(graph, std::move(inputs), 1 + random() % 2, 1 + random() % (random() % 2 ? 40 : 40'000));
  }
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  return graph;
}

model::Graph chain(uint32_t nodes, int64_t elements = 10) {
  model::Graph graph;
  graph.inputs.push_back(graph.add_value("x", floats(elements)));
  for (uint32_t i = 0; i < nodes; ++i)
    add_node(graph, {static_cast<model::ValueId>(graph.values.size() - 1)}, 1, elements);
  graph.outputs.push_back(static_cast<model::ValueId>(graph.values.size() - 1));
  return graph;
}

// Every node on some device at least, at random costs.
std::vector<DeviceCoverage> random_coverage(std::mt19937& random, const World& world, size_t nodes) {
  auto coverage = world.coverage(nodes);
  const uint32_t share = 1 + random() % 9;
  for (size_t i = 0; i < nodes; ++i) {
    const uint32_t certain = random() % coverage.size();
    for (uint32_t d = 0; d < coverage.size(); ++d)
      if (d == certain || random() % 10 < share) allow(coverage[d].nodes[i], 1 + random() % 100);
  }
  return coverage;
}

// Islands in their order: each reads only what came in, weights, and what earlier islands made. That order existing is
// what convex and acyclic mean together.
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

// The cost of labels by plain counting, with the least launches that two devices can do with.
double count_cost(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                  const std::vector<uint32_t>& labels) {
  const uint32_t host = BP_NONE;
  double sum = 0;
  std::map<model::ValueId, uint32_t> home;
  std::map<model::ValueId, std::set<uint32_t>> readers;
  for (model::ValueId value : graph.inputs) home[value] = host;
  for (uint32_t i = 0; i < labels.size(); ++i) {
    sum += coverage[labels[i]].nodes[i].seconds;
    for (model::ValueId value : graph.nodes[i].inputs) readers[value].insert(labels[i]);
    for (model::ValueId value : graph.nodes[i].outputs) home[value] = labels[i];
  }
  for (model::ValueId value : graph.outputs) readers[value].insert(host);
  // Device 0 is on the host, device 1 is a link of 1 GB/s and 10 µs away.
  for (const auto& [value, places] : readers) {
    const auto far = [](uint32_t place) { return place == 1; };
    const bool crosses = std::ranges::any_of(places, [&](uint32_t place) { return far(place) != far(home.at(value)); });
    if (crosses) sum += 10e-6 + static_cast<double>(graph.values[value].type.dims[0].extent) * 4 * 1e-9;
  }
  double launches = 1e9;
  for (uint32_t first : {0u, 1u}) {
    double seconds = 0;
    std::set<model::ValueId> there(graph.inputs.begin(), graph.inputs.end());
    std::vector<bool> done(labels.size());
    size_t left = labels.size();
    for (uint32_t device = first; left > 0; device = 1 - device) {
      size_t before = left;
      for (uint32_t i = 0; i < labels.size(); ++i) {
        if (done[i] || labels[i] != device) continue;
        if (!std::ranges::all_of(graph.nodes[i].inputs, [&](model::ValueId v) { return there.contains(v); })) continue;
        done[i] = true, --left;
        there.insert(graph.nodes[i].outputs.begin(), graph.nodes[i].outputs.end());
      }
      if (left < before) seconds += static_cast<double>(coverage[device].device->info().launch_ns) * 1e-9;
    }
    launches = std::min(launches, seconds);
  }
  return sum + launches;
}

double cheapest(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage) {
  double least = 1e9;
  const size_t nodes = graph.nodes.size();
  for (uint32_t mask = 0; mask < 1u << nodes; ++mask) {
    std::vector<uint32_t> labels(nodes);
    bool possible = true;
    for (uint32_t i = 0; i < nodes; ++i) {
      labels[i] = mask >> i & 1;
      possible = possible && coverage[labels[i]].nodes[i].usable();
    }
    if (possible) least = std::min(least, count_cost(graph, coverage, labels));
  }
  return least;
}

TEST(Place, RandomGraphsAndMasksGiveLegalIslandsThatCostNoMoreThanGreedyOrOneDevice) {
  std::mt19937 random(11);
  for (int round = 0; round < 10'000; ++round) {
    const World world(2 + random() % 3, random() % 2 * 20'000);
    const uint32_t nodes = 5 + random() % (round % 20 ? 60 : 196);
    const model::Graph graph = random_graph(random, nodes);
    auto coverage = random_coverage(random, world, nodes);
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

TEST(Place, TwoDevicesWithoutLaunchesAreOptimal) {
  std::mt19937 random(5);
  const World world(2);
  for (int round = 0; round < 400; ++round) {
    const uint32_t nodes = 5 + random() % 10;
    const model::Graph graph = random_graph(random, nodes);
    const auto coverage = random_coverage(random, world, nodes);
    const auto placement = place(graph, coverage, {});
    ASSERT_TRUE(placement.ok());
    const double least = cheapest(graph, coverage);
    ASSERT_NEAR(placement->cost.total(), least, least * 1e-9) << "round " << round;
    ASSERT_NEAR(placement->cost.total(), count_cost(graph, coverage, placement->device), least * 1e-9)
        << "round " << round;
  }
}

TEST(Place, TwoDevicesWithLaunchesAreNearTheOptimum) {
  std::mt19937 random(7);
  double excess = 0, worst = 0;
  const int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    const World world(2, 1000 + random() % 100'000);
    const uint32_t nodes = 5 + random() % 10;
    const model::Graph graph = random_graph(random, nodes);
    const auto coverage = random_coverage(random, world, nodes);
    const auto placement = place(graph, coverage, {});
    ASSERT_TRUE(placement.ok());
    const double least = cheapest(graph, coverage), total = placement->cost.total();
    ASSERT_GE(total, least * (1 - 1e-9)) << "round " << round;
    ASSERT_LE(count_cost(graph, coverage, placement->device), total * (1 + 1e-9)) << "round " << round;
    excess += total / least - 1;
    worst = std::max(worst, total / least - 1);
  }
  std::printf("above the optimum: %.4f%% on average, %.2f%% at worst\n", 100 * excess / rounds, 100 * worst);
  EXPECT_LE(excess / rounds, 0.05);
}

TEST(Place, AtomicGroupsAreTakenWholeInOneIslandOrNotAtAll) {
  std::mt19937 random(13);
  int taken = 0;
  for (int round = 0; round < 2000; ++round) {
    const World world(2 + random() % 2, random() % 2 * 20'000);
    const uint32_t nodes = 10 + random() % 40;
    const model::Graph graph = random_graph(random, nodes);
    auto coverage = random_coverage(random, world, nodes);
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
    // Each node that only a group allows is in one that is there as a whole.
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

TEST(Place, AGroupCountsWithItsOwnCostAndNotWithItsNodes) {
  const World world(2);
  const model::Graph graph = chain(6);
  auto coverage = world.coverage(6);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 20);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 21);
  coverage[1].groups = {{.nodes = {1, 2, 3, 4}, .atomic = true, .seconds = 10e-6, .name = "block"}};
  const auto placement = place(graph, coverage, {});
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, 1, 1, 1, 1, 0}));
  EXPECT_NEAR(placement->cost.compute, 50e-6, 1e-12);
  coverage[1].groups[0].seconds = 70e-6;  // 80 on the other device, but two copies of 10 come on top
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 1u);
  // Not atomic: a bonus for having all, and single nodes remain possible.
  coverage[1].groups[0].atomic = false;
  coverage[1].groups[0].seconds = 10e-6;
  EXPECT_NEAR(place(graph, coverage, {})->cost.compute, 50e-6, 1e-12);
}

TEST(Place, AGroupThatAPathLeavesAndEntersAgainIsNotTaken) {
  const World world(2);
  const model::Graph graph = chain(3);
  auto coverage = world.coverage(3);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
  coverage[1].groups = {{.nodes = {0, 2}, .atomic = true, .seconds = 1e-6}};
  const auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->device[0], 0u);
  EXPECT_EQ(placement->device[2], 0u);
  const auto pinned = place(graph, coverage, {.pins = {{"n0", "b"}}});
  EXPECT_EQ(pinned.status().code(), BP_UNSUPPORTED);
  EXPECT_NE(pinned.status().text().find("b (group)"), std::string::npos) << pinned.status().text();
}

TEST(Place, AnUnprofitableIslandStaysAndTheSavingIsNamed) {
  const World world(2, 5'000);
  const model::Graph graph = chain(9);
  auto coverage = world.coverage(9);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 20);
  allow(coverage[1].nodes[4], 2);
  const auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->islands.size(), 1u);
  const auto pinned = place(graph, coverage, {.pins = {{"name=n4", "b"}}});
  ASSERT_TRUE(pinned.ok());
  EXPECT_EQ(pinned->islands.size(), 3u);
  EXPECT_TRUE(pinned->savings.empty());
  ASSERT_EQ(placement->savings.size(), 1u);
  EXPECT_EQ(placement->savings[0].nodes, std::vector<uint32_t>{4});
  EXPECT_EQ(placement->savings[0].instead_of, 1u);
  EXPECT_NEAR(placement->savings[0].seconds, pinned->cost.total() - placement->cost.total(), 1e-12);
  // Where it pays it goes.
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 200);
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 3u);
  EXPECT_TRUE(place(graph, coverage, {})->savings.empty());
}

TEST(Place, ADeviceThatTellsNoCostDoesNotWinByIt) {
  const World world(2);
  const model::Graph graph = chain(4);
  auto coverage = world.coverage(4);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 0.5);
  for (NodeVerdict& verdict : coverage[1].nodes) verdict.answer = BP_ANSWER_YES;
  EXPECT_EQ(place(graph, coverage, {})->device, std::vector<uint32_t>(4, 0));
  std::ranges::reverse(coverage);
  EXPECT_EQ(place(graph, coverage, {})->device, std::vector<uint32_t>(4, 1));
  EXPECT_EQ(place(graph, coverage, {.fallback = BP_FALLBACK_PREFER})->device, std::vector<uint32_t>(4, 0));
}

TEST(Place, ABoundOfIslandsIsMetByGivingIslandsUp) {
  const World world(2);
  const model::Graph graph = chain(20);
  auto coverage = world.coverage(20);
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

TEST(Place, LargeIslandsAreCutAndAtomicGroupsAreNot) {
  const World world(1);
  const model::Graph graph = chain(20);
  auto coverage = world.coverage(20);
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

// Each node of a chain with a weight of 1000 floats of its own, and one that all share.
TEST(Place, ADeviceGetsNoMoreThanItsMemoryHolds) {
  model::Graph graph = chain(10);
  const model::ValueId shared = graph.add_value("shared", floats(1000));
  graph.values[shared].weight = 0;
  for (model::Node& node : graph.nodes) {
    const model::ValueId own = graph.add_value("own" + node.name, floats(1000));
    graph.values[own].weight = 0;
    node.inputs.insert(node.inputs.end(), {own, shared});
  }
  // Seven nodes' weights, the shared one, and a node's input and output.
  const World world(2, 0, 8 * 4000 + 2 * 40);
  auto coverage = world.coverage(10);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 100);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1);
  std::vector<uint32_t> seven(10, 0);
  std::fill_n(seven.begin(), 7, 1);
  EXPECT_EQ(place(graph, coverage, {})->device, seven);
  std::ranges::reverse(coverage);
  for (uint32_t& device : seven) device = 1 - device;
  EXPECT_EQ(place(graph, coverage, {.fallback = BP_FALLBACK_PREFER})->device, seven);
  for (uint32_t i = 7; i < 10; ++i) coverage[1].nodes[i].answer = BP_ANSWER_NO;
  EXPECT_EQ(place(graph, coverage, {})->device[9], 0u);  // what nobody else takes stays, others go
  const auto full = place(graph, coverage, {.fallback = BP_FALLBACK_FORBID});
  EXPECT_EQ(full.status().code(), BP_RESOURCE_EXHAUSTED);
  EXPECT_NE(full.status().text().find("'b' has 32080 bytes"), std::string::npos) << full.status().text();
}

TEST(Place, MeasuredCopiesCountBeforeWhatTheDeviceTells) {
  const World world(2);
  const model::Graph graph = chain(3, 1 << 20);
  auto coverage = world.coverage(3);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict, 3000);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict, 1000);
  // 6 ms saved, two copies of 4 MB at 1 GB/s: 8.4 ms.
  EXPECT_EQ(place(graph, coverage, {})->islands[0].device, 0u);
  coverage[1].profile = std::make_shared<Profile>();
  for (const auto& [from, to] : {std::pair("host", "b"), std::pair("b", "host")}) {
    coverage[1].profile->set(profile_key_of_copy(from, to, small_copy), 5e-6);
    coverage[1].profile->set(profile_key_of_copy(from, to, large_copy), 405e-6);
  }
  const auto placement = place(graph, coverage, {});
  EXPECT_EQ(placement->islands[0].device, 1u);
  ASSERT_EQ(placement->copies.size(), 2u);
  EXPECT_EQ(placement->copies[0].source, Source::kMeasured);
  EXPECT_NEAR(placement->copies[0].seconds, 405e-6, 1e-9);
}

TEST(Place, OneDeviceGivesOneIsland) {
  const World world(1);
  std::mt19937 random(3);
  const model::Graph graph = random_graph(random, 50);
  auto coverage = world.coverage(50);
  for (NodeVerdict& verdict : coverage[0].nodes) allow(verdict);
  auto placement = place(graph, coverage, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->islands.size(), 1u);
}

TEST(Place, ANodeThatNobodyTakesIsNamedWithEveryReason) {
  const World world(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
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
  const World world(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
  for (NodeVerdict& verdict : coverage[1].nodes) allow(verdict);
  EXPECT_TRUE(place(graph, coverage, {}).ok());
  EXPECT_FALSE(place(graph, coverage, {.fallback = BP_FALLBACK_FORBID}).ok());
}

TEST(Place, PinsCountBeforePreferenceAndMustBePossible) {
  const World world(2);
  std::mt19937 random(5);
  const model::Graph graph = random_graph(random, 4);
  auto coverage = world.coverage(4);
  for (DeviceCoverage& device : coverage)
    for (NodeVerdict& verdict : device.nodes) allow(verdict);
  auto placement = place(graph, coverage, {.fallback = BP_FALLBACK_PREFER, .pins = {{"n2", "b"}}});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->device, (std::vector<uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(placement->pin[2], "n2");
  coverage[1].nodes[2] = {};
  EXPECT_EQ(place(graph, coverage, {.pins = {{"n2", "b"}}}).status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(place(graph, coverage, {.pins = {{"op=O*", "nobody"}}}).status().code(), BP_NOT_FOUND);
}

TEST(Place, MoreIslandsThanAllowedIsAnError) {
  const World world(2);
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
  EXPECT_EQ(place(graph, coverage, {})->islands.size(), 6u);
  EXPECT_EQ(place(graph, coverage, {.max_islands = 5}).status().code(), BP_UNSUPPORTED);
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
