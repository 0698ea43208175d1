// SPDX-License-Identifier: Apache-2.0
// A chain of islands on one device makes the host wait, and calls it back, no more often than a single island.
#include <gmock/gmock.h>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::ElementsAre;

struct Trips {
  uint64_t launches, waits, callbacks;
};

class ChainTest : public OpenCl {
 protected:
  // Counts for one run of `nodes` Negs, each in its own island.
  static Trips trips_of(const Environment& env, int nodes) {
    Graph graph;
    uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
    for (int i = 0; i < nodes; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
    SessionOptions how;
    how.pins = {{"*", "opencl"}};
    how.options = {{"loader.costs", "reported"}, {"loader.max_island_nodes", "1"}};
    const Session session = env.compile(graph.finish({value}), how);
    EXPECT_EQ(session.node(static_cast<uint32_t>(nodes) - 1).island, static_cast<uint32_t>(nodes) - 1);
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    exec.run();  // plans
    const ClLayer& layer = cl_layer();
    const Trips before{layer.launches, layer.waits, layer.callbacks};
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), nodes % 2 == 0 ? ElementsAre(1, -2, 3) : ElementsAre(-1, 2, -3));
    return {layer.launches - before.launches, layer.waits - before.waits, layer.callbacks - before.callbacks};
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

}  // namespace
}  // namespace backplane::opencl::testing
