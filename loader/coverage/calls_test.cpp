// SPDX-License-Identifier: Apache-2.0
// Calls of a model's own functions, which a device may run whole, and nodes whose output types only a device can infer.
// Tested with the CPU backend and the fake backend (testing/fake_backend), which returns its first input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "backplane/client.hpp"
#include "testing/client_fixture.h"
#include "testing/onnx_writer.h"

namespace backplane::calls {
namespace {

using namespace testing::onnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kFake = BACKPLANE_BUILD_DIR "/tests/plugins/fake.so";

std::string with_text(std::string message, uint32_t field, const std::string& text) {
  Writer(message).add_string(field, text);
  return message;
}

// Pass is the identity in two nodes, -(-x), and has an unused input. AbsPass calls it after an Abs: |x|.
const Texts kFunctions = {
    with_text(
        function("my", "Pass", {"v", "unused"}, {"w"},
                 {node("Neg", {"v"}, {"t"}, {}, "", "first"), node("Neg", {"t"}, {"w"}, {}, "", "second")}, {{"", 17}}),
        field::function::kOverload, "wide"),
    function("my", "AbsPass", {"v"}, {"w"},
             {node("Abs", {"v"}, {"a"}, {}, "", "abs"),
              with_text(node("Pass", {"a"}, {"w"}, {int_attribute("alpha", 4)}, "my", "inner"), field::node::kOverload,
                        "wide")},
             {{"", 17}, {"my", 1}}),
};

// y = |relu(x)|, by a call of Pass named "call" and a call of AbsPass named "outer".
std::string calling() {
  const Texts nodes = {
      node("Relu", {"x"}, {"r"}, {}, "", "relu"),
      with_text(node("Pass", {"r", "x"}, {"p"}, {int_attribute("alpha", 3)}, "my", "call"), field::node::kOverload,
                "wide"),
      node("AbsPass", {"p"}, {"y"}, {}, "my", "outer"),
  };
  return model_bytes({{"", 17}, {"my", 1}}, graph(nodes, {tensor_value("x", 1, {2})}, {tensor_value("y", 1, {2})}),
                     kFunctions, 10);
}

SessionOptions on(std::vector<std::string> devices, uint32_t fallback = BP_FALLBACK_PREFER) {
  SessionOptions how;
  how.devices = std::move(devices);
  how.options = {{"loader.costs", "reported"}};
  how.fallback = fallback;
  return how;
}

// Returns a line for each node that the fake backend compiled, in any order: islands are compiled concurrently.
std::vector<std::string> compiled(const Environment& env) {
  std::istringstream text(
      static_cast<const char*>(api().env_get_extension(env.get(), view::text(std::string_view("fake/compiled")), 1)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<float> run(const Session& session) {
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {-3, 4}));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Calls, ADeviceThatClaimsTheFunctionGetsTheCallAsOneNode) {
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Pass"}});
  const Model model = env.parse(calling());
  const Session session = env.compile(model, on({"fake", "cpu"}));
  EXPECT_THAT(run(session), ElementsAre(0, 4));
  // The device refuses AbsPass, so it is inlined. Then the device is offered the call in its body.
  EXPECT_THAT(compiled(env),
              UnorderedElementsAre("my.Pass:wide 'call' alpha=3 2->1", "my.Pass:wide 'outer/inner' alpha=4 1->1"));
  // The graph keeps the bodies of calls and reports where each of their nodes runs.
  const std::string_view where[] = {"cpu", "fake", "fake", "cpu", "fake", "fake"};
  ASSERT_EQ(model.graph().node_count(), 6u);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(env.device(session.node(i).device).name, where[i]) << i;
  EXPECT_EQ(session.node(1).island, session.node(2).island);
  EXPECT_THAT(session.report(), HasSubstr(R"("name":"call/second")"));
  EXPECT_THAT(session.report(), HasSubstr(R"--("call":"node 'call' (my.Pass)")--"));
}

// A group of one call stands for all nodes of its body, so groups of a few kilobytes may become hundreds of megabytes.
TEST(Calls, GroupsAreLimitedWithTheBodiesOfCalls) {
  Texts body = {node("Neg", {"v"}, {"t0"})};
  for (int i = 1; i < 2000; ++i) body.push_back(node("Neg", {"t" + std::to_string(i - 1)}, {"t" + std::to_string(i)}));
  const Texts functions = {function("my", "Long", {"v"}, {"t1999"}, body, {{"", 17}})};
  const std::string bytes = model_bytes(
      {{"", 17}, {"my", 1}},
      graph({node("Long", {"x"}, {"y"}, {}, "my")}, {tensor_value("x", 1, {2})}, {tensor_value("y", 1, {2})}),
      functions, 10);
  for (const bool few : {true, false}) {
    const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Long"}, {"fake.grouped", few ? "8000" : "9000"}});
    const Error error = failure([&] { env.compile(env.parse(bytes), on({"fake", "cpu"})); });
    EXPECT_EQ(error.status(), few ? BP_OK : BP_INTERNAL);
    EXPECT_THAT(error.text(), few ? HasSubstr("nothing was thrown") : HasSubstr("with the bodies of the calls in it"));
  }
}

TEST(Calls, OfNestedCallsTheOuterOneIsClaimed) {
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Pass,AbsPass"}});
  const Session session = env.compile(env.parse(calling()), on({"fake", "cpu"}));
  EXPECT_THAT(run(session), ElementsAre(0, 4));
  EXPECT_THAT(compiled(env), UnorderedElementsAre("my.Pass:wide 'call' alpha=3 2->1", "my.AbsPass 'outer' 1->1"));
}

TEST(Calls, UnclaimedCallsAreInlined) {
  const Environment env = environment({kCpu, kFake});
  const Session session = env.compile(env.parse(calling()), on({"fake", "cpu"}));
  EXPECT_THAT(run(session), ElementsAre(0, 4));
  EXPECT_THAT(compiled(env), IsEmpty());
  const Error alone = failure([&] { env.compile(env.parse(calling()), on({"fake"})); });
  EXPECT_THAT(alone.what(), HasSubstr("node 'relu' (Relu) is supported by no device"));
}

TEST(Calls, AnotherDeviceMayTakeTheBody) {
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Pass,AbsPass"}});
  // The fake device does not run the calls whole if the CPU comes first, if only the CPU is allowed, or if the calls
  // are pinned to the CPU.
  EXPECT_THAT(run(env.compile(env.parse(calling()), on({"cpu", "fake"}))), ElementsAre(0, 4));
  EXPECT_THAT(run(env.compile(env.parse(calling()), on({"cpu", "fake"}, BP_FALLBACK_FORBID))), ElementsAre(0, 4));
  EXPECT_THAT(compiled(env), IsEmpty());
  SessionOptions pinned = on({"fake", "cpu"});
  pinned.pins = {{"call", "cpu"}, {"op=AbsPass", "cpu"}};
  EXPECT_THAT(run(env.compile(env.parse(calling()), pinned)), ElementsAre(0, 4));
  EXPECT_THAT(compiled(env), IsEmpty());
  // If one node of the body is pinned, no device runs the call as a whole.
  pinned.pins = {{"call/second", "cpu"}, {"outer", "fake"}};
  const Session torn = env.compile(env.parse(calling()), pinned);
  EXPECT_THAT(run(torn), ElementsAre(0, 4));
  EXPECT_THAT(compiled(env), ElementsAre("my.AbsPass 'outer' 1->1"));
  EXPECT_THAT(torn.report(), Not(HasSubstr(R"("call":"node 'call')")));
}

TEST(Calls, ACallInABodyCanBeClaimed) {
  // A device gets a body only if it also supports the If. The fake device compiles both branches and runs neither.
  const std::string branch = graph(
      {with_text(node("Pass", {"x"}, {"b"}, {}, "my", "in_body"), field::node::kOverload, "wide")}, {}, {value("b")});
  const std::string bytes = model_bytes(
      {{"", 17}, {"my", 1}},
      graph(
          {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})},
          {tensor_value("x", 1, {2}), tensor_value("c", 9, {})}, {tensor_value("y", 1, {2})}),
      kFunctions, 10);
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "If,Pass"}});
  const Session taken = env.compile(env.parse(bytes), on({"fake", "cpu"}));
  EXPECT_EQ(env.device(taken.node(0).device).name, "fake") << taken.report();
  const Environment without = environment({kCpu, kFake}, {{"fake.ops", "If"}});
  const Session refused = without.compile(without.parse(bytes), on({"fake", "cpu"}));
  EXPECT_EQ(without.device(refused.node(0).device).name, "cpu");
  EXPECT_THAT(refused.report(), HasSubstr("in its body Neg 'in_body/first' (operator): it is not in the script"));
}

TEST(Calls, ErrorsNameTheCall) {
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Pass"}, {"fake.fails", "Pass"}});
  const Error error = failure([&] { env.compile(env.parse(calling()), on({"fake", "cpu"})); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.what(), HasSubstr("(my.Pass): device 'fake'"));
}

// y = relu(pass(pass(x))). Only the fake device supports Pass, which is of another domain.
std::string foreign() {
  const Texts nodes = {node("Pass", {"x"}, {"a"}, {}, "acme", "one"), node("Pass", {"a"}, {"b"}, {}, "acme", "two"),
                       node("Relu", {"b"}, {"y"}, {}, "", "relu")};
  return model_bytes({{"", 17}, {"acme", 3}}, graph(nodes, {tensor_value("x", 1, {2})}, {value("y")}));
}

TEST(ForeignTypes, ComeFromTheDeviceThatClaimsTheNode) {
  const Environment knows = environment({kCpu, kFake}, {{"fake.ops", "Pass"}, {"fake.infer", "same"}});
  const Session session = knows.compile(knows.parse(foreign()), on({"fake", "cpu"}));
  EXPECT_THAT(run(session), ElementsAre(0, 4));
  EXPECT_THAT(compiled(knows), UnorderedElementsAre("acme.Pass 'one' 1->1", "acme.Pass 'two' 1->1"));

  // If the device does not report the output type, Relu on the CPU has an input of unknown type and is unsupported.
  const Environment silent = environment({kCpu, kFake}, {{"fake.ops", "Pass"}});
  const Error unclaimed = failure([&] { silent.compile(silent.parse(foreign()), on({"fake", "cpu"})); });
  EXPECT_THAT(unclaimed.what(), HasSubstr("node 'relu' (Relu) is supported by no device"));

  const Environment wrong = environment({kCpu, kFake}, {{"fake.ops", "Pass"}, {"fake.infer", "wrong"}});
  const Error error = failure([&] { wrong.compile(wrong.parse(foreign()), on({"fake", "cpu"})); });
  EXPECT_EQ(error.status(), BP_INTERNAL);
  EXPECT_THAT(error.what(),
              HasSubstr("node 'one' (acme.Pass): device 'fake' reported impossible output types: output 0 "
                        "has rank 99"));
}

TEST(ForeignTypes, ThatContradictTheModelAreRefused) {
  const std::string declared = model_bytes(
      {{"", 17}, {"acme", 3}},
      graph({node("Pass", {"x"}, {"y"}, {}, "acme", "one")}, {tensor_value("x", 1, {2})}, {tensor_value("y", 1, {3})}));
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Pass"}, {"fake.infer", "same"}});
  const Error error = failure([&] { env.compile(env.parse(declared), on({"fake", "cpu"})); });
  EXPECT_EQ(error.status(), BP_INVALID_MODEL);
  EXPECT_THAT(error.what(), HasSubstr("node 'one' (acme.Pass): output 'y' contradicts what the model declares"));
}

}  // namespace
}  // namespace backplane::calls
