// SPDX-License-Identifier: Apache-2.0
#include "minimize/minimize.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "minimize/sound.h"
#include "minimize/trial.h"

namespace backplane::conform {
namespace {

using testing::HasSubstr;

bool has(const Network& network, std::string_view op) {
  return std::ranges::any_of(network.spec.nodes, [&](const NodeSpec& node) { return node.op_type == op; });
}

Network network_with(std::string_view op) {
  for (uint64_t seed = 1;; ++seed) {
    Random random(seed, "minimise");
    Network network = random_network(random, {.nodes = 40}, 21);
    if (has(network, op) && recompute(network)) return network;
  }
}

TEST(Minimize, KeepsOnlyTheFailingOperator) {
  for (const char* op : {"MatMul", "Softmax", "Transpose"}) {
    const Network start = network_with(op);
    const Minimized found = minimize(start, {is_sound, [&](const Network& network) { return has(network, op); }});
    EXPECT_TRUE(found.finished);
    ASSERT_EQ(found.network.spec.nodes.size(), 1u) << op;
    EXPECT_EQ(found.network.spec.nodes[0].op_type, op);
    const Size size = size_of(found.network);
    EXPECT_LT(size.elements, size_of(start).elements);
    for (const ValueSpec& value : found.network.spec.values) {
      for (const int64_t extent : value.extents) EXPECT_EQ(extent, 1) << op;  // no operator requires a larger extent
    }
  }
}

TEST(Minimize, KeepsWhatTheFailureNeeds) {
  // The failure needs a computed value that Relu reads and that has an extent of at least three.
  const auto fails = [](const Network& network) {
    for (const NodeSpec& node : network.spec.nodes) {
      if (node.op_type != "Relu") continue;
      const ValueSpec& value = network.spec.values[node.inputs[0]];
      const bool is_wide = std::ranges::any_of(value.extents, [](int64_t extent) { return extent >= 3; });
      const bool is_computed = std::ranges::find(network.spec.inputs, node.inputs[0]) == network.spec.inputs.end();
      if (is_wide && is_computed && !value.weight) return true;
    }
    return false;
  };
  for (uint64_t seed = 1, found = 0; found < 3; ++seed) {
    Random random(seed, "minimise");
    Network start = random_network(random, {.nodes = 40}, 21);
    if (!recompute(start) || !fails(start)) continue;
    ++found;
    const Minimized smallest = minimize(start, {is_sound, fails});
    EXPECT_TRUE(fails(smallest.network));
    EXPECT_EQ(smallest.network.spec.nodes.size(), 2u);
    int64_t largest = 0;
    for (const ValueSpec& value : smallest.network.spec.values) {
      for (const int64_t extent : value.extents) largest = std::max(largest, extent);
    }
    EXPECT_EQ(largest, 3);
  }
}

TEST(Minimize, StopsAtItsLimit) {
  const Minimized found =
      minimize(network_with("Add"), {is_sound, [](const Network&) { return false; }}, {.attempts = 3});
  EXPECT_EQ(found.attempts, 3u);
  EXPECT_FALSE(found.finished);
}

TEST(Trial, ReportsHowWorkEnds) {
  using std::chrono::milliseconds;
  const auto ends = [](const std::function<Result()>& work) { return in_fork(work, std::chrono::minutes(1)); };
  const auto hangs = [](const std::function<Result()>& work) { return in_fork(work, milliseconds(500)); };
  EXPECT_EQ(ends([] { return Result{.state = State::kPass}; }).state, State::kPass);
  EXPECT_EQ(ends([]() -> Result { throw std::runtime_error("no"); }).reason, "no");
  EXPECT_EQ(ends([] { return raise(SIGKILL), Result{}; }).state, State::kCrash);
  EXPECT_THAT(ends([]() -> Result { _exit(3); }).reason, HasSubstr("exit status 3"));
  EXPECT_EQ(hangs([]() -> Result {
              for (;;) pause();
            }).state,
            State::kTimeout);
  EXPECT_EQ(hangs([]() -> Result {
              close_range(3, ~0u, 0);  // closes the pipe, too
              for (;;) pause();
            }).state,
            State::kTimeout);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child process is left
}

}  // namespace
}  // namespace backplane::conform
