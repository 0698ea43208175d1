// SPDX-License-Identifier: Apache-2.0
#include "place/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "place/problem.h"
#include "place/testing.h"

namespace backplane {
namespace {

using namespace placement_test;

// Computes the cost of an assignment directly from its definition, with as few launches as two devices allow.
double count_cost(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                  const std::vector<uint32_t>& assignment) {
  const uint32_t host = BP_NONE;
  double sum = 0;
  std::map<model::ValueId, uint32_t> origin;
  std::map<model::ValueId, std::set<uint32_t>> readers;
  for (model::ValueId value : graph.inputs) origin[value] = host;
  for (uint32_t i = 0; i < assignment.size(); ++i) {
    sum += coverage[assignment[i]].nodes[i].seconds;
    for (model::ValueId value : graph.nodes[i].inputs) readers[value].insert(assignment[i]);
    for (model::ValueId value : graph.nodes[i].outputs) origin[value] = assignment[i];
  }
  for (model::ValueId value : graph.outputs) readers[value].insert(host);
  // Device 0 works on host memory. Copies to and from device 1 run at 1 GB/s after a latency of 10 µs.
  for (const auto& [value, places] : readers) {
    const auto far = [](uint32_t place) { return place == 1; };
    const uint32_t origin_place = origin.at(value);
    const bool crosses = std::ranges::any_of(places, [&](uint32_t place) { return far(place) != far(origin_place); });
    if (crosses) sum += 10e-6 + static_cast<double>(graph.values[value].type.dims[0].extent) * 4 * 1e-9;
  }
  double launches = 1e9;
  for (uint32_t first : {0u, 1u}) {
    double seconds = 0;
    std::set<model::ValueId> there(graph.inputs.begin(), graph.inputs.end());
    std::vector<bool> done(assignment.size());
    size_t left = assignment.size();
    for (uint32_t device = first; left > 0; device = 1 - device) {
      size_t before = left;
      for (uint32_t i = 0; i < assignment.size(); ++i) {
        if (done[i] || assignment[i] != device) continue;
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
    std::vector<uint32_t> assignment(nodes);
    bool possible = true;
    for (uint32_t i = 0; i < nodes; ++i) {
      assignment[i] = mask >> i & 1;
      possible = possible && coverage[assignment[i]].nodes[i].usable();
    }
    if (possible) least = std::min(least, count_cost(graph, coverage, assignment));
  }
  return least;
}

TEST(Search, TwoDevicesWithoutLaunchesAreOptimal) {
  std::mt19937 random(5);
  const FakeDevices devices(2);
  for (int round = 0; round < 400; ++round) {
    const uint32_t nodes = 5 + random() % 10;
    const model::Graph graph = random_graph(random, nodes);
    const auto coverage = random_coverage(random, devices, nodes);
    const auto placement = place(graph, coverage, {});
    ASSERT_TRUE(placement.ok());
    const double least = cheapest(graph, coverage);
    ASSERT_NEAR(placement->cost.total(), least, least * 1e-9) << "round " << round;
    ASSERT_NEAR(placement->cost.total(), count_cost(graph, coverage, placement->device), least * 1e-9)
        << "round " << round;
  }
}

TEST(Search, TwoDevicesWithLaunchesAreNearTheOptimum) {
  std::mt19937 random(7);
  double excess = 0, worst = 0;
  const int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    const FakeDevices devices(2, 1000 + random() % 100'000);
    const uint32_t nodes = 5 + random() % 10;
    const model::Graph graph = random_graph(random, nodes);
    const auto coverage = random_coverage(random, devices, nodes);
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

// The number of steps grows at most linearly with the number of devices. Since each step visits all nodes, fewer steps
// are made in large graphs, so that the total time is near-linear in the number of nodes.
TEST(Search, ManyDevicesTakeFewStepsEach) {
  std::mt19937 random(5);
  for (const uint32_t nodes : {200u, 2000u}) {
    for (const uint32_t count : {2u, 8u, 32u}) {
      const FakeDevices devices(count, 20'000);
      const model::Graph graph = random_graph(random, nodes);
      const auto coverage = random_coverage(random, devices, nodes);
      Problem problem = make_problem(graph, coverage, std::vector<uint32_t>(nodes, BP_NONE));
      uint64_t steps = 0;
      problem.before_step = [&] { ++steps; };
      search(problem, 0);
      EXPECT_LE(steps, 30 * count + 3'000'000 / nodes) << nodes << " nodes, " << count << " devices";
    }
  }
}

}  // namespace
}  // namespace backplane
