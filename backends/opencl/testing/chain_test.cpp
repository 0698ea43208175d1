// SPDX-License-Identifier: Apache-2.0
// A chain of islands on one device costs no more than its kernels: the host waits no more often than for a single
// island, is called back no more often, and memory is moved between host and device no more often.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::ElementsAre;

// Options that put each node into an island of its own.
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
  // Counts the OpenCL calls of one run of `exec`, which must be planned and bound.
  static Trips trips_of_run(Exec& exec) {
    const ClLayer& layer = cl_layer();
    const Trips before{layer.launches, layer.waits, layer.callbacks, layer.maps, layer.copies};
    exec.run();
    return {layer.launches - before.launches, layer.waits - before.waits, layer.callbacks - before.callbacks,
            layer.maps - before.maps, layer.copies - before.copies};
  }
  // Counts the calls for a chain of `nodes` Neg nodes, each in its own island.
  static Trips trips_of(const Environment& env, int nodes) {
    Graph graph;
    uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
    for (int i = 0; i < nodes; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
    const Session session = env.compile(graph.finish({value}), apart({{"*", "opencl"}}));
    EXPECT_EQ(session.node(static_cast<uint32_t>(nodes) - 1).island, static_cast<uint32_t>(nodes) - 1);
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    exec.run();  // makes the plan
    const Trips trips = trips_of_run(exec);
    EXPECT_THAT(exec.output(0u).values<float>(), nodes % 2 == 0 ? ElementsAre(1, -2, 3) : ElementsAre(-1, 2, -3));
    return trips;
  }
  // Counts the calls for a chain of `nodes` Add nodes that all read the input `s`: two runs of one session for each
  // number of elements in `elements`, with different contents of `s`.
  static std::vector<Trips> trips_with_input(const Environment& env, int nodes, const std::vector<int64_t>& elements) {
    Graph graph;
    uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {-1});
    const uint32_t s = graph.input("s", BP_DTYPE_FLOAT, {-1});
    for (int i = 0; i < nodes; ++i) value = graph.node("Add", "n" + std::to_string(i), {value, s});
    Exec exec = env.compile(graph.finish({value}), apart({{"*", "opencl"}})).exec();
    std::vector<Trips> trips;
    for (const int64_t count : elements) {
      exec.bind("x", Tensor::of<float>({count}, std::vector<float>(count, 1)));
      for (const float added : {2.0f, 3.0f}) {  // each run must read the current contents of `s`
        exec.bind("s", Tensor::of<float>({count}, std::vector<float>(count, added)));
        exec.run();
        trips.push_back(trips_of_run(exec));
        EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(count, 1 + added * static_cast<float>(nodes)));
      }
    }
    return trips;
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

// A small input that every island reads is copied into the device's memory once per run. A large one is not copied:
// each island reads host memory.
TEST_F(ChainTest, ASmallInputOfManyIslandsIsHandedOverOnce) {
  constexpr int64_t kSmall = 3, kLarge = 100'000;
  const Environment env = opencl();
  const std::vector<Trips> few = trips_with_input(env, 3, {kSmall, kLarge, kSmall});
  const std::vector<Trips> many = trips_with_input(env, 20, {kSmall, kLarge, kSmall});
  for (const size_t run : {0, 1, 4, 5}) {
    EXPECT_EQ(many[run].copies, 1u) << run;
    EXPECT_EQ(many[run].maps, few[run].maps) << run;
    EXPECT_EQ(many[run].waits, few[run].waits) << run;
  }
  for (const size_t run : {2, 3}) EXPECT_EQ(many[run].copies, 0u) << run;
}

// `h`, which an OpenCL island computes, is also an output of the model, so it is in host memory.
TEST_F(ChainTest, AnOutputThatManyIslandsReadMakesNoTripThroughTheHost) {
  const Environment env = opencl();
  const auto trips = [&](int readers, int64_t elements) {
    Graph graph;
    const uint32_t h = graph.node("Neg", "h", {graph.input("x", BP_DTYPE_FLOAT, {elements})});
    uint32_t value = h;
    for (int i = 0; i < readers; ++i) value = graph.node("Add", "n" + std::to_string(i), {value, h});
    Exec exec = env.compile(graph.finish({h, value}), apart({{"*", "opencl"}})).exec();
    exec.bind("x", Tensor::of<float>({elements}, std::vector<float>(elements, -1)));
    exec.run();
    const Trips counted = trips_of_run(exec);
    EXPECT_EQ(exec.output(1u).values<float>(), std::vector<float>(elements, 1 + static_cast<float>(readers)));
    return counted;
  };
  for (const int64_t elements : {3, 100'000}) {
    const Trips few = trips(2, elements);
    for (const int readers : {3, 20}) {
      const Trips many = trips(readers, elements);
      EXPECT_EQ(many.callbacks, few.callbacks) << readers << " islands read " << elements << " elements";
      EXPECT_EQ(many.waits, few.waits) << readers << " islands read " << elements << " elements";
    }
  }
}

// If the copy of a small input to the device fails, the islands run on the next device of the session.
TEST_F(ChainTest, AFailedCopyOfAnInputIsRunElsewhere) {
  const Environment env = opencl();
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  uint32_t value = x;
  for (int i = 0; i < 3; ++i) value = graph.node("Add", "n" + std::to_string(i), {value, x});
  SessionOptions how = apart({});
  how.devices = {"opencl", "cpu"};
  how.fallback = BP_FALLBACK_PREFER;
  Exec exec = env.compile(graph.finish({value}), how).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, 2, 3}));
  cl_layer().fail("clEnqueueWriteBuffer", CL_INVALID_COMMAND_QUEUE);
  exec.run();
  cl_layer().clear_failures();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(4, 8, 12));
}

// The first output is bound to the memory of an input that later islands read. The input is large, because a small one
// would be copied, which would hide the conflict.
TEST_F(ChainTest, AnOutputInTheMemoryOfAnInputIsRefusedHoweverManyReadIt) {
  const Environment env = opencl();
  for (const int readers : {2, 3, 5}) {
    constexpr int64_t kElements = 100'000;
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {kElements});
    const uint32_t first = graph.node("Neg", "first", {x});
    uint32_t value = first;
    for (int i = 1; i < readers; ++i) value = graph.node("Add", "n" + std::to_string(i), {value, x});
    Exec exec = env.compile(graph.finish({first, value}), apart({{"*", "opencl"}})).exec();
    const Tensor both = Tensor::of<float>({kElements}, std::vector<float>(kElements, 1));
    exec.bind(0u, both);
    exec.bind_output(0u, both);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_UNSUPPORTED) << readers << " islands read the input";
  }
}

// A value that the CPU backend computes, with extents that are known only during the run, is copied once for all the
// OpenCL islands that read it.
TEST_F(ChainTest, ASmallValueOfUnknownExtentsIsHandedOverOnce) {
  const Environment env = opencl();
  Graph graph;
  const uint32_t where = graph.node("NonZero", "where", {graph.input("x", BP_DTYPE_FLOAT, {-1})});
  const uint32_t a = graph.node("Neg", "a", {where});
  const uint32_t b = graph.node("Add", "b", {a, where});
  const uint32_t c = graph.node("Add", "c", {b, where});
  Exec exec =
      env.compile(graph.finish({c}), apart({{"where", "cpu"}, {"a", "opencl"}, {"b", "opencl"}, {"c", "opencl"}}))
          .exec();
  for (const int64_t count : {4, 100'000, 5}) {
    exec.bind("x", Tensor::of<float>({count}, std::vector<float>(count, 1)));
    const uint64_t bytes = cl_layer().copied_bytes;
    exec.run();
    std::vector<int64_t> expected(count);
    for (int64_t i = 0; i < count; ++i) expected[i] = i;
    EXPECT_EQ(exec.output(0u).values<int64_t>(), expected);
    EXPECT_LT(cl_layer().copied_bytes - bytes, 100u) << count;
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
