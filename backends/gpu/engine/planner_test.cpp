// SPDX-License-Identifier: Apache-2.0
// Checks the errors of planning an island, without a device.
#include "engine/planner.h"

#include <gmock/gmock.h>

#include <limits>

#include "abi/testing/plugin_under_test.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

using ::testing::HasSubstr;

// Returns why the graph, which has no inputs, cannot be planned.
sdk::Error refusal(const bp_graph_t* graph) {
  bp_host_t slots{};
  slots.size = sizeof slots;
  const sdk::Host host(&slots);
  const DeviceCaps caps;
  try {
    static_cast<void>(Planner({table(), caps, host, 0, {}}, sdk::Graph(graph), {}, {}).make());
  } catch (const sdk::Error& error) {
    return error;
  }
  return {BP_OK, "it can be planned"};
}

// As in numpy.arange, which ONNX's reference calls.
TEST(Planner, ARangeWithoutANumberOfElementsIsRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [start, limit, delta] : {std::array{kNan, 4.0f, 1.0f},
                                            {0.0f, kNan, 1.0f},
                                            {0.0f, 4.0f, kNan},
                                            {kInfinity, kInfinity, 1.0f},
                                            {0.0f, 4.0f, 0.0f},
                                            {0.0f, kInfinity, 1.0f}}) {
    testing::TinyGraph graph;
    const uint32_t from = graph.weight("from", {}, {start}), to = graph.weight("to", {}, {limit}),
                   by = graph.weight("by", {}, {delta});
    graph.output(graph.node("Range", 11, {from, to, by}, {-1}));
    const sdk::Error error = refusal(graph.get());
    EXPECT_EQ(error.status, BP_INVALID_ARGUMENT) << start << " " << limit << " " << delta;
    EXPECT_THAT(error.text, HasSubstr("Range 'node0': a range from"));
  }
}

// A weight whose file the host cannot read any more.
TEST(Planner, TheHostsErrorForAWeightIsReported) {
  testing::TinyGraph graph;
  graph.output(graph.node("Relu", 14, {graph.weight("w", {1}, {1})}, {1}));
  bp_graph_t unreadable = *graph.get();
  bp_graph_api_t api = *unreadable.api;
  api.weight_hash = [](const bp_graph_t*, uint32_t, uint64_t*, bp_error_t* error) -> bp_status_t {
    return sdk::report(error, BP_IO_ERROR, "w.bin cannot be read: Stale file handle", BP_NO_NODE, 116);
  };
  unreadable.api = &api;
  const sdk::Error error = refusal(&unreadable);
  EXPECT_EQ(error.status, BP_IO_ERROR);
  EXPECT_EQ(error.vendor_code, 116);
  EXPECT_THAT(error.text, HasSubstr("weight 'w': w.bin cannot be read: Stale file handle"));
}

}  // namespace
}  // namespace backplane::gpu
