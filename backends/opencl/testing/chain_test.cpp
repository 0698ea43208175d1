// SPDX-License-Identifier: Apache-2.0
// A chain of islands on one device costs no more than its kernels: the host waits no more often than for a single
// island, is called back no more often, and memory is moved between host and device no more often.
#include <gmock/gmock.h>

#include <utility>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::ElementsAre;

// Each node is in its own island.
SessionOptions apart(std::map<std::string, std::string> pins) {
  SessionOptions how;
  how.pins = std::move(pins);
  how.options = {{"loader.costs", "reported"}, {"loader.max_island_nodes", "1"}};
  return how;
}

struct Trips {
  uint64_t launches, waits, callbacks, maps, copies;
};

class ChainTest : public OpenCl {
 protected:
  // Counts for one run of `nodes` Negs, each in its own island.
  static Trips trips_of(const Environment& env, int nodes) {
    Graph graph;
    uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
    for (int i = 0; i < nodes; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
    const Session session = env.compile(graph.finish({value}), apart({{"*", "opencl"}}));
    EXPECT_EQ(session.node(static_cast<uint32_t>(nodes) - 1).island, static_cast<uint32_t>(nodes) - 1);
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    exec.run();  // makes the plan
    const ClLayer& layer = cl_layer();
    const Trips before{layer.launches, layer.waits, layer.callbacks, layer.maps, layer.copies};
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), nodes % 2 == 0 ? ElementsAre(1, -2, 3) : ElementsAre(-1, 2, -3));
    return {layer.launches - before.launches, layer.waits - before.waits, layer.callbacks - before.callbacks,
            layer.maps - before.maps, layer.copies - before.copies};
  }
};

TEST_F(ChainTest, MakesNoTripThroughTheHostBetweenIslands) {
  const Environment env = opencl();
  const Trips one = trips_of(env, 1), twenty = trips_of(env, 20);
  EXPECT_EQ(one.launches, 1u);
  EXPECT_EQ(twenty.launches, 20u);
  EXPECT_EQ(twenty.waits, one.waits);
  EXPECT_EQ(twenty.callbacks, one.callbacks);
}

// Values between the islands stay in device memory, even if the device shares memory with the host.
TEST_F(ChainTest, HandsNoMemoryOverBetweenIslands) {
  for (const char* memory : {"shared", "own"}) {
    const Environment env = opencl({{"opencl.memory", memory}});
    const Trips one = trips_of(env, 1), twenty = trips_of(env, 20);
    EXPECT_EQ(twenty.maps, one.maps) << memory;
    EXPECT_EQ(twenty.copies, one.copies) << memory;
  }
}

// Islands of both devices read `a`; only an OpenCL island reads `b`.
TEST_F(ChainTest, WhatTheCpuReadsTooIsNotCopied) {
  const Environment env = opencl();
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const uint32_t a = graph.node("Neg", "a", {x});
  const uint32_t c = graph.node("Abs", "c", {graph.node("Neg", "b", {a})});
  const Model model = graph.finish({c, graph.node("Abs", "d", {a})});
  Exec exec = env.compile(model, apart({{"a", "opencl"}, {"b", "opencl"}, {"c", "opencl"}, {"d", "cpu"}})).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  for (int run = 0; run < 3; ++run) {
    const uint64_t copies = cl_layer().copies;
    exec.run();
    EXPECT_EQ(cl_layer().copies, copies);
    for (const uint32_t output : {0u, 1u}) EXPECT_THAT(exec.output(output).values<float>(), ElementsAre(1, 2, 3));
  }
}

// A driver may refuse a single allocation for all values between the islands, but grant one for each value.
TEST_F(ChainTest, NeedsNoAllocationLargerThanAValue) {
  constexpr int64_t kElements = 10'000;
  const Environment env = opencl();
  Graph graph;
  const uint32_t a = graph.node("Neg", "a", {graph.input("x", BP_DTYPE_FLOAT, {kElements})});
  const uint32_t c = graph.node("Add", "c", {a, graph.node("Abs", "b", {a})});
  const Session session = env.compile(graph.finish({c}), apart({{"*", "opencl"}}));
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({kElements}, std::vector<float>(kElements, -3)));
  cl_layer().limit_buffers(kElements * sizeof(float));
  for (int run = 0; run < 2; ++run) {
    exec.run();
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(kElements, 6));
  }
}

// If extents are known only during the run, the values between the islands are allocated then.
TEST_F(ChainTest, WorksWithExtentsThatFollowFromValues) {
  const Environment env = opencl();
  Graph graph;
  uint32_t value = graph.node("NonZero", "where", {graph.input("x", BP_DTYPE_FLOAT, {4})});
  for (const char* name : {"a", "b", "c"}) value = graph.node("Neg", name, {value});
  Exec exec =
      env.compile(graph.finish({value}), apart({{"where", "cpu"}, {"a", "opencl"}, {"b", "opencl"}, {"c", "opencl"}}))
          .exec();
  const std::pair<std::vector<float>, std::vector<int64_t>> cases[] = {
      {{1, 0, 1, 1}, {0, -2, -3}}, {{0, 0, 1, 0}, {-2}}, {{1, 1, 1, 1}, {0, -1, -2, -3}}, {{0, 0, 0, 0}, {}}};
  for (const auto& [x, result] : cases) {
    exec.bind("x", Tensor::of<float>({4}, x));
    exec.run();
    EXPECT_EQ(exec.output(0u).values<int64_t>(), result);
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
