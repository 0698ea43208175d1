// SPDX-License-Identifier: Apache-2.0
#include "place/interior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "place/move_to.h"
#include "place/search.h"
#include "place/testing.h"

namespace backplane {
namespace {

using namespace placement_test;

// A chain with its first half on one device. The second part of the test adds a shortcut from the first node to the
// last.
TEST(Region, OnlyNodesFarFromTheBorderShareALabel) {
  const FakeDevices devices(2);
  model::Graph graph = chain(20);
  const auto problem = [&] { return make_problem(graph, devices.coverage(20), std::vector<uint32_t>(20, BP_NONE)); };
  Assignment assignment(20, 0);
  std::fill_n(assignment.begin() + 10, 10, 1);
  std::vector<uint32_t> expected(20, 0);
  std::fill_n(expected.begin() + 7, 6, BP_NONE);
  std::fill_n(expected.begin() + 13, 7, 13);
  EXPECT_EQ(label_interior(problem(), assignment, 2), expected);
  // Nodes 1 and 19 read the same value now, so both are near the border.
  graph.nodes[19].inputs.push_back(graph.nodes[0].outputs[0]);
  for (uint32_t near : {0, 1, 2, 3, 17, 18, 19}) expected[near] = BP_NONE;
  for (uint32_t i = 4; i < 7; ++i) expected[i] = 4;
  EXPECT_EQ(label_interior(problem(), assignment, 2), expected);
  EXPECT_EQ(label_interior(problem(), assignment, 20), std::vector<uint32_t>(20, BP_NONE));
  EXPECT_EQ(label_interior(problem(), Assignment(20, 1), 20), std::vector<uint32_t>(20, 0));
}

// On random graphs, nodes that must move together do so. The result costs no less than the optimum and no more than
// moving no node.
TEST(Region, NodesOfARegionMoveTogether) {
  std::mt19937 random(3);
  const FakeDevices devices(2);
  int apart = 0, moved = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t nodes = 10 + random() % 50;
    const model::Graph graph = random_graph(random, nodes);
    const Problem problem =
        make_problem(graph, random_coverage(random, devices, nodes), std::vector<uint32_t>(nodes, BP_NONE));
    Assignment base(nodes);
    std::vector<uint32_t> together(nodes, BP_NONE);
    for (uint32_t i = 0; i < nodes; ++i) {
      base[i] = problem.can(i, 0) ? 0 : 1;
      if (random() % 4) together[i] = i / 5;
    }
    const auto additive = [&](const Assignment& assignment) {
      const Cost cost = evaluate(problem, assignment).cost;
      return cost.compute + cost.copies;
    };
    const Assignment tied = move_to(problem, base, 1, {}, 0, together), loose = move_to(problem, base, 1);
    EXPECT_GE(additive(tied), additive(loose) * (1 - 1e-9)) << "round " << round;
    EXPECT_LE(additive(tied), additive(base) * (1 + 1e-9)) << "round " << round;
    std::vector<uint32_t> device(nodes, BP_NONE);
    for (uint32_t i = 0; i < nodes; ++i) {
      if (together[i] == BP_NONE || !problem.can(i, 0) || !problem.can(i, 1)) continue;
      uint32_t& all = device[together[i]];
      if (all == BP_NONE) all = tied[i];
      EXPECT_EQ(tied[i], all) << "round " << round << " node " << i;
      moved += tied[i];
    }
    apart += tied != loose;
  }
  EXPECT_GT(apart, 100);
  EXPECT_GT(moved, 100);
}

}  // namespace
}  // namespace backplane
