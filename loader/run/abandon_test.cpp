// SPDX-License-Identifier: Apache-2.0
// Devices that hang: once one was given up, no function of its plugin is called any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;

uint64_t id_of(const Environment& env, uint32_t device = 0) {
  return env.devices()[1 + device].info.id;  // after the CPU's
}

void bind_x(Exec& exec) {
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
}

TEST(Abandon, NothingOfTheDeviceIsCalledAgain) {
  const partial::Counters* counted = nullptr;
  {
    const Environment env = streaming({{"partial.marks", "1"}, {"partial.scratch", "1000"}});
    counted = &counters(env);
    SessionOptions how;
    how.devices = {"partial", "cpu"};
    how.fallback = BP_FALLBACK_PREFER;
    how.flags = BP_SESSION_REFIT;
    how.options["loader.costs"] = "reported";
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
    const uint32_t w = graph.weight("w", Tensor::of<float>({1}, {2}));
    const Session session = env.compile(graph.finish({graph.node("Mul", "y", {graph.node("Neg", "n", {x}), w})}), how);
    const Session unused = env.compile(chain(2), how);
    const Stream stream = env.stream(id_of(env));
    const NativeSemaphore semaphore(env.get(), id_of(env));
    const Buffer buffer = env.allocate(id_of(env), 64);
    Exec exec = session.exec(), other = session.exec(), never_run = session.exec();
    for (Exec* one : {&exec, &other}) {
      bind_x(*one);
      one->run();
    }
    EXPECT_GT(counted->runs, 0u);
    env.abandon_device(id_of(env));
    EXPECT_EQ(failure([&] { session.refit("w", Tensor::of<float>({1}, {5})); }).status(), BP_DEVICE_LOST);
    Tensor weight = Tensor::of<float>({1}, {0});
    session.read_weight("w", weight);
    EXPECT_THAT(weight.values<float>(), ElementsAre(2));
    bind_x(other);
    for (Exec* one : {&exec, &other}) {
      one->run();
      EXPECT_THAT(one->output(0u).values<float>(), ElementsAre(-2, 4, -6));  // on the CPU
    }
  }
  EXPECT_EQ(counted->calls_after_abandon, 0u);
}

}  // namespace
}  // namespace backplane
