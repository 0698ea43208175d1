// SPDX-License-Identifier: Apache-2.0
#include "mincut/minimum_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "backplane/types.h"
#include "mincut/push_relabel.h"
#include "mincut/residual.h"
#include "mincut/sweep.h"
#include "mincut/wave.h"

namespace backplane {
namespace {

// A random network. Each vertex v has up to 3 arcs, to vertices v - `window` … v - 1. An arc costs less than `dearest`
// in each direction, a vertex less than 1000 on each side.
CutCosts draw(std::mt19937& random, uint32_t count, uint32_t window, uint32_t dearest) {
  CutCosts costs;
  for (uint32_t v = 0; v < count; ++v) {
    costs.add_vertex();
    costs.add_cost(v, static_cast<int64_t>(random() % 1000), static_cast<int64_t>(random() % 1000));
    const auto price = [&] { return random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % dearest); };
    for (uint32_t k = 0; v > 0 && k < 3; ++k)
      costs.add_arc(v, v - 1 - static_cast<uint32_t>(random()) % std::min(v, window), price(), price());
  }
  return costs;
}

int64_t cost_of(const CutCosts& costs, const std::vector<bool>& with_sink) {
  int64_t sum = 0;
  for (size_t v = 0; v < with_sink.size(); ++v) sum += with_sink[v] ? costs.sink_cost[v] : 0;
  for (const CutCosts::Arc& arc : costs.arcs)
    if (with_sink[arc.from] != with_sink[arc.to]) sum += with_sink[arc.to] ? arc.cost : arc.reverse_cost;
  return sum;
}

TEST(MaxFlow, NoCutOfASmallNetworkIsCheaper) {
  std::mt19937 random(1);
  size_t mixed = 0;
  for (int round = 0; round < 600; ++round) {
    const uint32_t count = 2 + random() % 9;
    const CutCosts costs = draw(random, count, count, round % 3 == 0 ? 10000 : 300);
    int64_t least = INT64_MAX;
    for (uint32_t bits = 0; bits < 1u << count; ++bits) {
      std::vector<bool> cut(count);
      for (uint32_t v = 0; v < count; ++v) cut[v] = bits >> v & 1;
      least = std::min(least, cost_of(costs, cut));
    }
    const std::vector<bool> found = minimum_cut(costs);
    ASSERT_EQ(cost_of(costs, found), least) << "round " << round;
    mixed += std::ranges::count(found, true) % count != 0;
  }
  EXPECT_GT(mixed, 100u);
}

// Textbook augmenting paths: sends flow along one shortest path after another.
void send_by_paths(Residual& network) {
  for (;;) {
    std::vector<uint32_t> by(network.count, BP_NONE),
        queue;  // `by`: the arc into a vertex; BP_NONE: not reached; BP_NONE - 1: start
    for (uint32_t v = 0; v < network.count; ++v)
      if (network.excess[v] > 0) by[v] = BP_NONE - 1, queue.push_back(v);
    size_t i = 0;
    for (; i < queue.size() && network.to_sink[queue[i]] == 0; ++i)
      for (uint32_t a = network.first[queue[i]]; a < network.first[queue[i] + 1]; ++a)
        if (const Residual::Arc& arc = network.arcs[a]; arc.left > 0 && by[arc.head] == BP_NONE)
          by[arc.head] = a, queue.push_back(arc.head);
    if (i == queue.size()) return;
    int64_t amount = network.to_sink[queue[i]];
    uint32_t start = queue[i];
    const auto tail = [&](uint32_t a) { return network.arcs[network.arcs[a].twin].head; };
    for (; by[start] != BP_NONE - 1; start = tail(by[start])) amount = std::min(amount, network.arcs[by[start]].left);
    amount = std::min(amount, network.excess[start]);
    network.excess[start] -= amount, network.to_sink[queue[i]] -= amount;
    for (uint32_t v = queue[i]; v != start; v = tail(by[v])) {
      network.arcs[by[v]].left -= amount;
      network.arcs[network.arcs[by[v]].twin].left += amount;
    }
  }
}

// The minimum cut with the fewest vertices on the sink's side is unique, so all algorithms must find the same cut.
TEST(MaxFlow, SweepsWavesAndLabelsFindTheCutThatPathsFind) {
  std::mt19937 random(2);
  size_t mixed = 0, swept = 0, mirrored = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t count = 50 + random() % 400;
    const uint32_t dearest = std::array{300u, 2000u, 100'000u}[static_cast<size_t>(round % 3)];
    const CutCosts costs = draw(random, count, 1 + random() % 20, dearest);
    Residual plain(costs);
    send_by_paths(plain);
    const std::vector<bool> expected = reaches_sink(plain);
    mixed += std::ranges::count(expected, true) % count != 0;

    Residual waves(costs);
    send_in_waves(waves);
    ASSERT_EQ(reaches_sink(waves), expected) << "round " << round;

    Residual labels(costs);
    mirrored += labels.unsent_to_sink() < labels.unsent();
    send_by_push_relabel(labels);
    ASSERT_EQ(reaches_sink(labels), expected) << "round " << round;

    Residual sweeps(costs);
    send_in_sweeps(sweeps);
    swept += sweeps.excess != Residual(costs).excess;
    round % 2 ? send_in_waves(sweeps) : send_by_push_relabel(sweeps);
    ASSERT_EQ(reaches_sink(sweeps), expected) << "round " << round;
    EXPECT_EQ(cost_of(costs, minimum_cut(costs)), cost_of(costs, expected)) << "round " << round;
  }
  EXPECT_GT(mixed, 100u);
  EXPECT_EQ(swept, 300u);
  EXPECT_GT(mirrored, 50u);
  EXPECT_LT(mirrored, 250u);
}

// If the arcs can carry all flow, the sweeps alone send it, however far it travels.
TEST(MaxFlow, SweepsSolveNetworksOfExpensiveArcs) {
  std::mt19937 random(3);
  CutCosts costs = draw(random, 20'000, 20, 1000);
  for (uint32_t v = 1; v < 20'000; ++v) costs.add_arc(v - 1, v, 1'000'000, 1'000'000);
  Residual network(costs);
  send_in_sweeps(network);
  const auto open = [](const std::vector<int64_t>& all) {
    return std::ranges::count_if(all, [](int64_t left) { return left > 0; });
  };
  EXPECT_EQ(std::min(open(network.excess), open(network.to_sink)), 0);
}

}  // namespace
}  // namespace backplane
