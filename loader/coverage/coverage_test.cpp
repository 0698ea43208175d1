// SPDX-License-Identifier: Apache-2.0
// How the loader uses the verdicts of devices: tested through the public API, with partial devices
// (testing/partial_backend) and the CPU backend.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "backplane/client.hpp"
#include "testing/client_fixture.h"
#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";

// A body whose only node reads `x` of the outer graph; with `deeper`, the node is in an If inside the body.
Builder make_body(const Builder& outer, const char* op, bool deeper = false);

uint32_t add_if(Builder& builder, uint32_t condition, const char* then_op, const char* else_op, bool deeper) {
  const Builder then_body = make_body(builder, then_op, deeper), else_body = make_body(builder, else_op);
  NodeOptions how;
  how.attributes = {{"then_branch", &then_body}, {"else_branch", &else_body}};
  how.name = "If";
  return builder.node("If", {condition}, how);
}

uint32_t add_node(Builder& builder, const char* op, const std::vector<uint32_t>& inputs) {
  NodeOptions how;
  how.name = op;
  return builder.node(op, inputs, how);
}

Builder make_body(const Builder& outer, const char* op, bool deeper) {
  Builder body = outer.body();
  const uint32_t x = body.input("x", BP_DTYPE_FLOAT, {2});
  body.output(deeper ? add_if(body, body.input("condition", BP_DTYPE_BOOL, {}), op, "Neg", false)
                     : add_node(body, op, {x}));
  return body;
}

// y = |condition ? then_op(x) : -x|
Model branches(const char* then_op, bool deeper) {
  Builder builder(24);
  builder.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t condition = builder.input("condition", BP_DTYPE_BOOL, {});
  builder.output(add_node(builder, "Abs", {add_if(builder, condition, then_op, "Neg", deeper)}));
  return builder.finish();
}

std::vector<float> run(const Session& session) {
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {-3, 4}));
  const uint8_t yes = 1;
  exec.bind("condition", Tensor(BP_DTYPE_BOOL, {}, &yes));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Coverage, ADeviceClaimsANodeWithBodiesIfItClaimsAllOfThem) {
  const Environment env = environment({kCpu, kPartialFile}, {{"partial.ops", "!Exp"}, {"partial.seconds", "1e-9"}});
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  how.options = {{"loader.costs", "reported"}};
  for (const bool deeper : {false, true}) {
    const Session fits = env.compile(branches("Relu", deeper), how);
    EXPECT_EQ(env.device(fits.node(0).device).name, "partial") << fits.report();
    EXPECT_THAT(run(fits), ElementsAre(0, 4));

    const Session other = env.compile(branches("Exp", deeper), how);
    EXPECT_EQ(env.device(other.node(0).device).name, "cpu") << other.report();
    EXPECT_THAT(other.report(), HasSubstr(R"("reason":"subgraph","detail":"in its body Exp 'Exp' (operator): )"));
    EXPECT_NEAR(run(other)[1], std::exp(4.0f), 1e-3);
  }
}

// Two products with weights of 640 kB each, on a device with 1 MB.
TEST(Coverage, ANodeForWhichADeviceHasNoRoomIsReportedAsSuch) {
  const Environment env =
      environment({kCpuFile, kPartialFile}, {{"partial.memory", "own"}, {"partial.bytes", "1000000"}});
  Builder builder(21);
  uint32_t value = builder.input("x", BP_DTYPE_FLOAT, {1, 400});
  for (const char* const weight : {"a", "b"})
    value = builder.node("MatMul", {value, builder.weight(weight, Tensor(BP_DTYPE_FLOAT, {400, 400}))});
  builder.output(value);
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  how.fallback = BP_FALLBACK_PREFER;
  how.options = {{"loader.costs", "reported"}};
  const Session session = env.compile(builder.finish(), how);
  uint64_t moved = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    if (env.device(session.node(i).device).name != "cpu") continue;
    ++moved;
    const std::string_view why = "its 1000000 bytes of memory are used by the nodes placed there";
    EXPECT_EQ(view::text(session.node(i).reason), why);
    const bp_node_verdict_t verdict = session.verdict(i, env.devices()[1].info.id);
    EXPECT_EQ(verdict.answer, BP_ANSWER_NO);
    EXPECT_EQ(verdict.reason, BP_REASON_MEMORY);
    EXPECT_EQ(view::text(verdict.detail), why);
  }
  EXPECT_EQ(moved, 1u) << session.report();
}

// A chain of `nodes` nodes that alternates Neg and Relu: y = … relu(-relu(-x)).
Model alternating(int nodes) {
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {2});
  for (int i = 0; i < nodes; ++i) value = graph.node(i % 2 ? "Relu" : "Neg", "n" + std::to_string(i), {value});
  return graph.finish({value});
}

SessionOptions reported(std::vector<std::string> devices) {
  SessionOptions how;
  how.devices = std::move(devices);
  how.options = {{"loader.costs", "reported"}};
  return how;
}

const std::string kFake = BACKPLANE_BUILD_DIR "/tests/plugins/fake.so";

TEST(Coverage, ComputeTypesAreThoseThatTheSessionAllows) {
  const auto environment_of = [](const char* grouped) {
    return environment(
        {kCpuFile, kFake},
        {{"fake.ops", "Relu"}, {"fake.compute", std::to_string(BP_COMPUTE_TF32)}, {"fake.grouped", grouped}});
  };
  const Environment env = environment_of("0"), grouping = environment_of("1");
  for (const uint32_t allowed : {0u, BP_COMPUTE_FP16, BP_COMPUTE_TF32, BP_COMPUTE_TF32 | BP_COMPUTE_BF16}) {
    for (const Environment* const one : {&env, &grouping}) {
      SessionOptions how = reported({"fake", "cpu"});
      how.fallback = BP_FALLBACK_PREFER;
      how.compute_types = allowed;
      const Session session = one->compile(alternating(2), how);
      const bool taken = (allowed & BP_COMPUTE_TF32) != 0;
      EXPECT_EQ(one->device(session.node(1).device).name, taken ? "fake" : "cpu") << allowed;
      if (!taken) {
        EXPECT_THAT(session.report(), HasSubstr(R"("reason":"precision")"));
      }
    }
  }
  SessionOptions unknown;
  unknown.compute_types = 1u << 31;
  EXPECT_EQ(failure([&] { env.compile(alternating(2), unknown); }).status(), BP_UNSUPPORTED);
}

// The backend supports all operator sets, but this device may support only those up to 12, in which Neg has no
// BFLOAT16.
TEST(Coverage, OperatorSetsMayBeThoseOfTheDevice) {
  for (const bool old : {false, true}) {
    const Environment env =
        environment({kCpuFile, kFake}, {{"fake.ops", "Identity,Neg"}, {"fake.opset", old ? "12" : "0"}});
    SessionOptions how = reported({"fake", "cpu"});
    how.fallback = BP_FALLBACK_PREFER;
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_BFLOAT16, {2});  // Neg accepts BFLOAT16 from opset 13 on
    const Session session = env.compile(graph.finish({graph.node("Neg", "y", {x})}), how);
    EXPECT_EQ(env.device(session.node(0).device).name, old ? "cpu" : "fake");
    if (old) {
      EXPECT_THAT(session.report(), HasSubstr(R"("reason":"opset")"));
      EXPECT_THAT(session.report(),
                  HasSubstr("an input or its type needs version 13 of Neg; this device knows opset 12"));
    }
  }
}

TEST(Coverage, ADeviceThatSplitsEachIslandIntoItselfGetsNone) {
  const Environment env = environment({kCpu, kPartialFile}, {{"partial.resplit", "1"}, {"partial.seconds", "1e-9"}});
  SessionOptions wanted = reported({"partial", "cpu"});
  wanted.fallback = BP_FALLBACK_PREFER;
  const Session session = env.compile(alternating(8), wanted);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(env.device(session.node(i).device).name, "cpu");
  EXPECT_THAT(session.report(), HasSubstr("given back in review of an island of 8 nodes"));
}

TEST(Coverage, NodesReturnedByReviewArePlacedElsewhere) {
  // The device accepts at most three nodes in an island, gives back Relu nodes, or rejects islands with a Relu.
  for (const auto& [option, value] :
       {std::pair("partial.max_nodes", "3"), std::pair("partial.split", "Relu"), std::pair("partial.reject", "Relu")}) {
    const Environment env = environment({kCpu, kPartialFile}, {{option, value}, {"partial.seconds", "1e-9"}});
    SessionOptions wanted = reported({"partial", "cpu"});
    wanted.fallback = BP_FALLBACK_PREFER;
    const Session session = env.compile(alternating(8), wanted);
    std::map<uint32_t, int> sizes;
    int given_back = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const bp_placed_node_t node = session.node(i);
      ++sizes[node.island];
      given_back += env.device(node.device).name == "cpu";
    }
    const std::string_view how(option);
    EXPECT_EQ(given_back, how == "partial.max_nodes" ? 0 : how == "partial.split" ? 4 : 8) << session.report();
    if (how == "partial.max_nodes") {
      for (const auto& [island, size] : sizes) EXPECT_LE(size, 3) << "island " << island;
    } else {
      EXPECT_THAT(session.report(), HasSubstr("given back in review of an island of 8 nodes"));
      if (how == "partial.reject") {
        EXPECT_THAT(session.report(), HasSubstr("nodes: the script rejects Relu"));
      }
    }
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({2}, {-3, 4}));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(0, 0)) << option;
  }
}

TEST(Coverage, AnIslandThatDoesNotPayIsLeftOutUnlessPinned) {
  const Environment env = environment({kCpu, kPartialFile},
                                      {{"partial.ops", "Abs"}, {"partial.memory", "own"}, {"partial.seconds", "1e-9"}});
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Neg", "y", {graph.node("Abs", "a", {graph.node("Neg", "n", {x})})})});
  SessionOptions how = reported({"partial", "cpu"});
  EXPECT_THAT(env.compile(model, how).report(),
              HasSubstr(R"("savings":[{"island":0,"device":"cpu","instead_of":"partial","nodes":[1],"seconds":2)"));
  how.pins = {{"op=Ab*", "partial"}};
  const Session pinned = env.compile(model, how);
  EXPECT_EQ(env.device(pinned.node(1).device).name, "partial");
  EXPECT_THAT(pinned.report(), HasSubstr(R"("savings":[])"));
}

class CoverageCosts : public ::testing::Test {
 protected:
  CoverageCosts() : folder_(::testing::TempDir() + "coverage_test." + std::to_string(::getpid())) {
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~CoverageCosts() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  std::string folder_;
};

TEST_F(CoverageCosts, WhatWasMeasuredCountsInLaterSessionsUnlessForbidden) {
  const Environment env = environment({kCpu, kPartialFile}, {{"partial.memory", "own"}, {"partial.seconds", "1e-9"}});
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  const auto report = [&](const char* costs) {
    how.options["loader.costs"] = costs;
    return env.compile(alternating(4), how).report();
  };
  const std::string measured = R"("source":"measured")", reported = R"("seconds":1e-09,"source":"backend")";
  EXPECT_THAT(report("reported"), Not(HasSubstr(measured)));
  EXPECT_THAT(report("known"), HasSubstr(reported));  // no node has been measured yet
  EXPECT_THAT(report("measure"), Not(HasSubstr(reported)));
  EXPECT_THAT(report("known"), AllOf(HasSubstr(measured), Not(HasSubstr(reported))));
  EXPECT_THAT(report("reported"), AllOf(HasSubstr(reported), Not(HasSubstr(measured))));
  const Error error = failure([&] { report("guessed"); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), HasSubstr("'guessed': it must be reported, known or measure"));
}

// A time that was measured with one extent says nothing about sessions that fix another.
TEST_F(CoverageCosts, MeasuredTimesHoldForTheExtentsOfTheMeasurement) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 1000}, {"n", ""});
  const Model model = graph.finish({graph.node("Abs", "y", {x})});
  const Environment env = environment({kCpu});
  const auto report = [&](const char* costs, int64_t n) {
    SessionOptions how;
    how.flags = BP_SESSION_PLACE_ONLY;
    how.symbols = {{"n", {n, n}}};
    how.options["loader.costs"] = costs;
    return env.compile(model, how).report();
  };
  const std::string measured = R"("source":"measured")";
  EXPECT_THAT(report("measure", 7), HasSubstr(measured));
  EXPECT_THAT(report("known", 7), HasSubstr(measured));
  EXPECT_THAT(report("known", 700), Not(HasSubstr(measured)));
}

// To measure a node, memory for all its inputs and outputs is allocated.
TEST_F(CoverageCosts, NodesWithLargeTensorsAreNotMeasured) {
  Graph graph;
  std::vector<uint32_t> inputs;
  for (const char* name : {"a", "b", "c"}) inputs.push_back(graph.input(name, BP_DTYPE_FLOAT, {300'000'000}));
  const Model model = graph.finish({graph.node("Max", "y", inputs)});
  SessionOptions how;
  how.options["loader.costs"] = "measure";
  EXPECT_THAT(environment({kCpu}).compile(model, how).report(), Not(HasSubstr(R"("source":"measured")")));
}

TEST_F(CoverageCosts, CopiesAreMeasuredOnce) {
  // Copies are so slow that the device is not worth using, although it reports almost no time for its nodes.
  const Environment env = environment(
      {kCpu, kPartialFile}, {{"partial.memory", "own"}, {"partial.seconds", "1e-9"}, {"partial.copy_us", "2000"}});
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {1000});
  for (int i = 0; i < 1000; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
  const Model model = graph.finish({value});
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  const Session session = env.compile(model, how);
  EXPECT_EQ(env.device(session.node(0).device).name, "cpu") << session.report().substr(0, 1000);
  const auto copies = [&] { return counters(env).copies.load(); };
  const uint64_t before = copies();
  EXPECT_GT(before, 0u);
  env.compile(model, how);
  EXPECT_EQ(copies(), before);
}

// The CPU backend, except that it refuses every node with BP_REASON_DTYPE and without a text.
const bp_plugin_t* BP_CALL query_silent_plugin(const bp_host_offer_t* offer) {
  static const auto kQuery = reinterpret_cast<bp_plugin_query_t>(
      ::dlsym(::dlopen(kCpu.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), BP_PLUGIN_SYMBOL));
  static bp_plugin_t silent;
  static bp_coverage_api_t coverage;
  static decltype(coverage.query) inner;
  silent = *kQuery(offer);
  coverage = *silent.coverage;
  inner = coverage.query;
  coverage.query = [](bp_device_t* device, const bp_coverage_query_t* what, const bp_coverage_sink_t* sink,
                      bp_error_t* error) {
    bp_coverage_sink_t own = *sink;
    own.self = const_cast<bp_coverage_sink_t*>(sink);
    own.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t) {
      const auto& host = *static_cast<const bp_coverage_sink_t*>(self);
      for (bp_verdict_t verdict : std::span(verdicts, count)) {
        verdict.answer = BP_ANSWER_NO;
        verdict.reason = BP_REASON_DTYPE;
        verdict.detail = {};
        host.verdicts(host.self, &verdict, 1, sizeof verdict);
      }
    };
    own.groups = [](void*, const bp_group_t*, uint32_t, uint32_t) {};
    return inner(device, what, &own, error);
  };
  silent.coverage = &coverage;
  return &silent;
}

TEST(Coverage, ARefusalHasATextWhateverItsReason) {
  EnvironmentOptions only;
  only.only_given = true;
  only.plugins = {query_silent_plugin};
  const Environment env(only);
  Graph graph;
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  const Session session =
      env.compile(graph.finish({graph.node("Relu", "y", {graph.input("x", BP_DTYPE_FLOAT, {2})})}), how);
  const bp_node_verdict_t verdict = session.verdict(0, env.devices()[0].info.id);
  EXPECT_EQ(verdict.answer, BP_ANSWER_NO);
  EXPECT_EQ(verdict.reason, BP_REASON_DTYPE);
  EXPECT_EQ(view::text(verdict.detail), "not supported; the backend gave no reason");
}

}  // namespace
}  // namespace backplane
