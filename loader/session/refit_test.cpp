// SPDX-License-Identifier: Apache-2.0
// Replacing the weights of sessions, and reading them back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backplane/client.hpp"
#include "session/testing.h"
#include "testing/client_fixture.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;

TEST(Session, WeightsAreReplacedAndReadBack) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t b = graph.weight("b", Tensor::of<float>({2}, {1, -1}));
  const uint32_t unused = graph.weight("c", Tensor::of<float>({1}, {9}));
  const Model model = graph.finish({graph.node("Relu", "y", {graph.node("Add", "s", {x, b})}), b, unused});
  const Environment env = environment({kCpu});
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, how);
  Exec exec = session.exec();
  const auto outputs = [&](Exec& e) {
    e.bind("x", Tensor::of<float>({2}, {1, 2}));
    e.run();
    std::vector<float> all = e.output(0u).values<float>();
    for (float value : e.output(1u).values<float>()) all.push_back(value);
    return all;
  };
  EXPECT_THAT(outputs(exec), ElementsAre(2, 1, 1, -1));
  for (float v = 10; v < 13; ++v) {
    session.refit("b", Tensor::of<float>({2}, {v, -v}));
    EXPECT_THAT(outputs(exec), ElementsAre(v + 1, 0, v, -v));
    Tensor back(BP_DTYPE_FLOAT, {2});
    session.read_weight("b", back);
    EXPECT_THAT(back.values<float>(), ElementsAre(v, -v));
  }
  Exec fresh = session.exec();
  EXPECT_THAT(outputs(fresh), ElementsAre(13, 0, 12, -12));
}

TEST(Session, RefitsThatCannotBeAreNamed) {
  const Environment env = environment({kCpu});
  const Tensor b = Tensor::of<float>({2}, {0, 0});
  EXPECT_EQ(failure([&] { env.compile(relu_of_sum()).refit("b", b); }).status(), BP_BAD_STATE);
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(relu_of_sum(), how);
  EXPECT_EQ(failure([&] { session.refit("unknown", b); }).status(), BP_NOT_FOUND);
  EXPECT_EQ(failure([&] { session.refit("b", Tensor::of<float>({1}, {0})); }).status(), BP_TYPE_MISMATCH);
  EXPECT_EQ(failure([&] { session.refit("b", Tensor::of<int32_t>({2}, {0, 0})); }).status(), BP_TYPE_MISMATCH);
}

TEST(Session, RefitsWithStringsBeyondTheirBytesAreRefused) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t words = graph.weight("words", Tensor::of_strings({2}, {"a", "b"}));
  const Model model = graph.finish({graph.node("Relu", "y", {x}), words});
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  const Environment env = environment({kCpu});
  const Session session = env.compile(model, how);
  const Tensor fresh = Tensor::of_strings({2}, {"one", "two"});
  session.refit("words", fresh);
  auto* const offsets = static_cast<int64_t*>(fresh.abi().buffer.address);
  for (const std::vector<int64_t>& wrong : std::vector<std::vector<int64_t>>{{0, 3, 1000}, {0, 1000, 6}, {-8, 3, 6}}) {
    std::ranges::copy(wrong, offsets);
    EXPECT_EQ(failure([&] { session.refit("words", fresh); }).status(), BP_INVALID_ARGUMENT);
  }
}

// Several weights at once, including one in a device's memory. If one cannot be replaced, none is.
TEST(Session, RefitsOfSeveralWeightsAreAllOrNone) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t b = graph.weight("b", Tensor::of<float>({2}, {1, 1}));
  const uint32_t c = graph.weight("c", Tensor::of<float>({2}, {2, 2}));
  const Model model = graph.finish({graph.node("Mul", "y", {graph.node("Add", "s", {x, b}), c})});
  const Environment env =
      environment({kCpu, BACKPLANE_BUILD_DIR "/tests/plugins/partial.so"}, {{"partial.memory", "own"}});
  SessionOptions how;
  how.devices = {"cpu"};
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, how);
  Exec exec = session.exec();
  const auto y = [&] {
    exec.bind("x", Tensor::of<float>({2}, {1, 2}));
    exec.run();
    return exec.output(0u).values<float>();
  };
  EXPECT_THAT(y(), ElementsAre(4, 6));
  session.refit({{"b", Tensor::of<float>({2}, {0, 0})}, {"c", Tensor::of<float>({2}, {5, 5})}});
  EXPECT_THAT(y(), ElementsAre(5, 10));
  const Tensor wrong = Tensor::of<float>({1}, {0}), zero = Tensor::of<float>({2}, {0, 0});
  EXPECT_EQ(failure([&] { session.refit({{"c", zero}, {"b", wrong}}); }).status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(y(), ElementsAre(5, 10));
  const Tensor seven = Tensor::of<float>({2}, {7, 7});
  const Buffer there = env.allocate(env.devices()[1].info.id, 8);
  env.copy(seven.abi().buffer, there.abi(), 8);
  const std::vector<int64_t> extents = {2};
  const bp_tensor_t tensor = there.tensor(BP_DTYPE_FLOAT, extents);
  const bp_named_tensor_t weight{view::text("c"), &tensor};
  bp_session_refit_t what{};
  what.size = sizeof what;
  what.count = 1;
  what.weights = &weight;
  what.stride = sizeof weight;
  detail::call(api().session_refit, session.get(), static_cast<const bp_session_refit_t*>(&what));
  EXPECT_THAT(y(), ElementsAre(7, 14));
  // Of a large buffer only the weight is copied; this one is larger than any memory.
  bp_tensor_t large = tensor;
  large.buffer.bytes = uint64_t{1} << 60;
  env.copy(zero.abi().buffer, there.abi(), 8);
  const bp_named_tensor_t of_large{view::text("c"), &large};
  what.weights = &of_large;
  detail::call(api().session_refit, session.get(), static_cast<const bp_session_refit_t*>(&what));
  EXPECT_THAT(y(), ElementsAre(0, 0));

  const bp_named_tensor_t twice[] = {weight, weight};
  what.weights = twice, what.count = 2;
  EXPECT_EQ(api().session_refit(session.get(), &what, nullptr), BP_INVALID_ARGUMENT);
}

// A device is lost after its weight was replaced. The null backend takes over, and must receive later refits.
TEST(Session, RefitsReachADeviceThatTookOver) {
  const Environment env = environment(
      {BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so", BACKPLANE_BUILD_DIR "/tests/plugins/partial.so"},
      {{"partial.fault", "lost@y#2"}});
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Add", "y", {x, graph.weight("w", Tensor::of<float>({2}, {1, 1}))})});
  SessionOptions how;
  how.devices = {"partial", "null"};
  how.fallback = BP_FALLBACK_PREFER;
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, how);
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {1, 2}));
  const auto y = [&] {
    exec.run();
    return exec.output(0u).values<float>();
  };
  EXPECT_THAT(y(), ElementsAre(2, 3));
  for (float w = 10; w < 14; ++w) {
    session.refit("w", Tensor::of<float>({2}, {w, w}));
    EXPECT_THAT(y(), ElementsAre(w + 1, w + 2));
    EXPECT_THAT(y(), ElementsAre(w + 1, w + 2));  // in the first iteration, the device is lost in this run
  }
}

// The import folds expressions over small constants. The weights in them cannot be replaced by other elements; all
// other weights can.
TEST(Session, WeightsThatTheImportFoldedAreRefused) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t w = graph.weight("w", Tensor::of<float>({2}, {1, 1}));
  const uint32_t shape = graph.weight("shape", Tensor::of<int64_t>({2}, {2, 1}));
  const uint32_t copied = graph.weight("copied", Tensor::of<float>({2}, {0, 0}));
  const uint32_t joined = graph.weight("joined", Tensor::of<float>({2}, {5, 6}));
  const uint32_t sum = graph.node("Add", "sum", {x, graph.node("Neg", "n", {w})});
  const uint32_t same = graph.node("Add", "same", {sum, graph.node("Identity", "i", {copied})});
  const Model model = graph.finish(
      {graph.node("Reshape", "y", {same, shape}), graph.node("Concat", "z", {x, joined}, {{"axis", int64_t{0}}})});
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  const Environment env = environment({kCpu});
  const Session session = env.compile(model, how);
  Exec exec = session.exec();
  const auto output = [&](uint32_t i) {
    exec.bind("x", Tensor::of<float>({2}, {5, 7}));
    exec.run();
    return exec.output(i).values<float>();
  };
  EXPECT_THAT(output(0), ElementsAre(4, 6));
  const Error folded = failure([&] { session.refit("w", Tensor::of<float>({2}, {3, 3})); });
  EXPECT_EQ(folded.status(), BP_UNSUPPORTED);
  EXPECT_THAT(folded.what(), ::testing::HasSubstr("weight 'w'"));
  EXPECT_EQ(failure([&] { session.refit("shape", Tensor::of<int64_t>({2}, {1, 2})); }).status(), BP_UNSUPPORTED);
  EXPECT_THAT(output(0), ElementsAre(4, 6));
  session.refit({{"w", Tensor::of<float>({2}, {1, 1})},
                 {"shape", Tensor::of<int64_t>({2}, {2, 1})},
                 {"copied", Tensor::of<float>({2}, {10, 20})},
                 {"joined", Tensor::of<float>({2}, {8, 9})}});
  EXPECT_THAT(output(0), ElementsAre(14, 26));
  EXPECT_THAT(output(1), ElementsAre(5, 7, 8, 9));
}

// Gather counts indices from the back since opset 11. A device that is shown an older form gets no such indices.
TEST(Session, RefitsKeepToTheFormsThatDevicesKnow) {
  for (const char* opset : {"10", "11"}) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
    const uint32_t indices = graph.weight("indices", Tensor::of<int64_t>({2}, {0, 2}));
    const Model model = graph.finish({graph.node("Gather", "y", {x, indices})});
    const Environment env = environment({kFake}, {{"fake.ops", "Gather"}, {"fake.opset", opset}});
    SessionOptions how;
    how.devices = {"fake"};
    how.flags = BP_SESSION_REFIT;
    const Session session = env.compile(model, how);
    session.refit("indices", Tensor::of<int64_t>({2}, {1, 0}));
    const Tensor negative = Tensor::of<int64_t>({2}, {1, -1});
    if (std::string_view(opset) == "11") {
      session.refit("indices", negative);
      continue;
    }
    const Error refused = failure([&] { session.refit("indices", negative); });
    EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
    EXPECT_THAT(refused.what(), ::testing::HasSubstr("supports Gather only in an older form"));
    session.refit("indices", Tensor::of<int64_t>({2}, {2, 2}));
  }
}

// The text that bp_session_node returned stays valid as long as the session, even after refits that compiled its
// programs again.
TEST(Session, RefitsLeaveTheReasonsOfThePlacement) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Add", "y", {x, graph.weight("w", Tensor::of<float>({2}, {1, 1}))})});
  const Environment env = environment({kFake, kCpu}, {{"fake.ops", "Abs"}});
  SessionOptions how;
  how.devices = {"fake", "cpu"};
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, how);
  bp_placed_node_t node{};
  node.size = sizeof node;
  detail::call(api().session_node, static_cast<const bp_session_t*>(session.get()), 0u, &node);
  const std::string before(node.reason.data, node.reason.size);
  EXPECT_FALSE(before.empty());
  for (float w = 2; w < 6; ++w) session.refit("w", Tensor::of<float>({2}, {w, w}));
  EXPECT_EQ(view::text(node.reason), before);
}

}  // namespace
}  // namespace backplane
