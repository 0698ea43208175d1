// SPDX-License-Identifier: Apache-2.0
// Sessions through the public API: the C++ client, the built loader, the CPU backend and test backends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "backplane/client.hpp"
#include "session/testing.h"
#include "testing/client_fixture.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Session, RunsABuiltGraphWithFreeExtents) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({1, 2}, {-3, 5}));
  exec.run();
  EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(0, 4));
  exec.bind("x", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  exec.extents(0, {2, 2});
  exec.run();
  EXPECT_EQ(exec.output("y").extents(), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(2, 1, 4, 3));
}

// A device that cannot be queried must not keep others from running the model, unless the session lists it.
TEST(Session, LeavesOutADeviceThatCannotBeQueried) {
  const std::string fault = BACKPLANE_BUILD_DIR "/tests/plugins/fault.so";
  for (const char* const what : {"throw_in_open", "nothing_in_open"}) {
    SCOPED_TRACE(what);
    const Environment env = environment({kCpu, fault}, {{"fault.what", what}});
    ASSERT_EQ(env.devices().size(), 2u);
    Exec exec = env.compile(relu_of_sum()).exec();
    exec.bind("x", Tensor::of<float>({1, 2}, {-3, 5}));
    exec.run();
    EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(0, 4));
    SessionOptions named;
    named.devices = {"cpu", env.devices().back().name};
    EXPECT_NE(failure([&] { env.compile(relu_of_sum(), named); }).status(), BP_OK);
    // If there is no other device, the error of the query is returned.
    const Environment alone = environment({fault}, {{"fault.what", what}});
    EXPECT_NE(failure([&] { alone.compile(relu_of_sum()); }).status(), BP_OK);
  }
}

TEST(Session, APinThatPlacesNoNodeIsLogged) {
  EnvironmentOptions how;
  how.backend_files = {kCpu};
  how.only_given = true;
  how.log_level = BP_LOG_WARNING;
  std::vector<std::string> lines;
  how.log = [&](uint32_t, std::string_view line) { lines.emplace_back(line); };
  const Environment env(how);
  SessionOptions pins;
  pins.pins = {{"op=Add", "cpu"}, {"op=Rleu", "cpu"}};
  env.compile(relu_of_sum(), pins);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("pin 'op=Rleu' places no node")));
}

TEST(Session, WritesIntoTheFrameworksOutput) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  Tensor y(BP_DTYPE_FLOAT, {1, 2});
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  exec.bind_output("y", y);
  exec.run();
  EXPECT_THAT(y.values<float>(), ElementsAre(2, 1));
  exec.bind("x", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_BUFFER_TOO_SMALL);
  EXPECT_THAT(error.text(), HasSubstr("'y' needs 16 bytes"));
}

TEST(Session, WrongBindingsAreNamed) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_BAD_STATE);
  EXPECT_THAT(error.text(), HasSubstr("input 'x' is not bound"));
  error = failure([&] { exec.bind(0u, Tensor::of<float>({1, 3}, {1, 2, 3})); });
  EXPECT_EQ(error.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(error.text(), HasSubstr("input 'x': expects [rows,2], got [1,3]"));
  error = failure([&] { exec.bind(0u, Tensor::of<int32_t>({1, 2}, {1, 2})); });
  EXPECT_THAT(error.text(), HasSubstr("expects float, got int32"));
  error = failure([&] { exec.bind(7u, Tensor::of<float>({1, 2}, {1, 2})); });
  EXPECT_EQ(error.status(), BP_NOT_FOUND);
}

// Includes numbers that, added to BP_SLOT_OUTPUT, wrap around to the slot of an input.
TEST(Session, OutputsThatDoNotExistAreRefused) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Neg", "y", {x}), graph.node("SequenceConstruct", "s", {x})});
  const Environment env = environment({kCpu});
  Exec exec = env.compile(model).exec();
  exec.bind("x", Tensor::of<float>({2}, {1, 2}));
  exec.run();
  for (const uint32_t output : {2u, BP_SLOT_OUTPUT, BP_SLOT_SCRATCH, UINT32_MAX - BP_SLOT_OUTPUT + 1, UINT32_MAX}) {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    EXPECT_EQ(api().exec_output(exec.get(), output, &tensor, nullptr), BP_NOT_FOUND) << output;
    bp_container_t* container = nullptr;
    EXPECT_EQ(api().exec_output_container(exec.get(), output, &container, nullptr), BP_NOT_FOUND) << output;
    EXPECT_EQ(failure([&] { exec.bind_output(output, Tensor(BP_DTYPE_FLOAT, {2})); }).status(), BP_NOT_FOUND) << output;
  }
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, -2));
  bp_container_t* container = nullptr;
  EXPECT_EQ(api().exec_output_container(exec.get(), 1, &container, nullptr), BP_OK);
}

TEST(Session, BoundOutputsGetNewExtents) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  Tensor y(BP_DTYPE_FLOAT, {2, 2});
  const std::vector<int64_t> one{1, 2}, three{3, 2};
  const auto set = [&](const std::vector<int64_t>& extents) {
    const bp_slot_extents_t slots[] = {{0, 2, extents.data()}, {BP_SLOT_OUTPUT, 2, extents.data()}};
    return api().exec_extents(exec.get(), slots, 2, sizeof *slots, nullptr);
  };
  EXPECT_EQ(set(one), BP_BAD_STATE);  // the output is not bound
  exec.bind_output("y", y);
  EXPECT_EQ(set(three), BP_BUFFER_TOO_SMALL);
  EXPECT_EQ(set(one), BP_OK);
  exec.run();
  EXPECT_EQ(exec.output("y").extents(), one);
}

TEST(Session, ANodeHasABoundOnItsOutputs) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  bp_node_desc_t node{};
  node.size = sizeof node;
  node.op_type = view::text("Split");
  node.inputs = &x;
  node.input_count = 1;
  uint32_t first = 0;
  for (const uint32_t outputs : {1'000'001u, UINT32_MAX}) {
    node.output_count = outputs;
    EXPECT_EQ(api().builder_node(graph.get(), &node, &first, nullptr), BP_INVALID_ARGUMENT) << outputs;
  }
  node.output_count = 2;
  EXPECT_EQ(api().builder_node(graph.get(), &node, &first, nullptr), BP_OK);
}

TEST(Session, ASymbolHasOneExtentInAllInputs) {
  Graph graph;
  const uint32_t a = graph.input("a", BP_DTYPE_FLOAT, {-1}, {"n"});
  const uint32_t b = graph.input("b", BP_DTYPE_FLOAT, {-1}, {"n"});
  const Environment env = environment({kCpu});
  Exec exec = env.compile(graph.finish({graph.node("Mul", "y", {a, b})})).exec();
  exec.bind("a", Tensor::of<float>({2}, {1, 2}));
  exec.bind("b", Tensor::of<float>({1}, {1}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(error.text(), HasSubstr("dimension 'n' is 1, but input 'a' has 2"));
}

TEST(Session, OutputsThatNoIslandWrites) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_INT64, {2});
  const uint32_t w = graph.weight("w", Tensor::of<int64_t>({1}, {7}));
  const uint32_t y = graph.node("Neg", "y", {x});
  const Environment env = environment({kCpu});
  Exec exec = env.compile(graph.finish({y, y, x, w})).exec();
  exec.bind("x", Tensor::of<int64_t>({2}, {3, 4}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(-3, -4));
  EXPECT_THAT(exec.output(1u).values<int64_t>(), ElementsAre(-3, -4));
  EXPECT_THAT(exec.output(2u).values<int64_t>(), ElementsAre(3, 4));
  EXPECT_THAT(exec.output(3u).values<int64_t>(), ElementsAre(7));
}

TEST(Session, TwoBackendsShareAGraph) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t a = graph.node("Neg", "a", {x});
  const uint32_t b = graph.node("Abs", "b", {a});  // the fake backend returns its input: not the absolute value
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Abs"}});
  SessionOptions how;
  how.devices = {"fake", "cpu"};
  how.fallback = BP_FALLBACK_PREFER;
  const Session session = env.compile(graph.finish({graph.node("Neg", "y", {b}), b}), how);
  EXPECT_EQ(env.device(session.node(1).device).name, "fake");
  EXPECT_EQ(env.device(session.node(0).device).name, "cpu");
  EXPECT_EQ(session.node(2).island, 2u);
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {1, -2}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2));
  EXPECT_THAT(exec.output(1u).values<float>(), ElementsAre(-1, 2));
}

TEST(Session, AnUnsupportedNodeIsNamed) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Tanh", "squash", {x})});
  const Environment env = environment({kFake});
  const Error error = failure([&] { env.compile(model); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("'squash' (Tanh) is supported by no device: fake (operator)"));
  EXPECT_NE(error.node(), BP_NO_NODE);
}

TEST(Session, APluginOfTheOpsetBeforeStillRuns) {
  Graph graph;
  const uint32_t start = graph.input("start", BP_DTYPE_INT64, {});
  const uint32_t limit = graph.input("limit", BP_DTYPE_INT64, {});
  const uint32_t delta = graph.input("delta", BP_DTYPE_INT64, {});
  const Model model = graph.finish({graph.node("Range", "r", {start, limit, delta})});
  EXPECT_EQ(model.graph().node(0).since_version(), 27u);
  const Environment env = environment({kOld});
  Exec exec = env.compile(model).exec();
  exec.bind("start", Tensor::of<int64_t>({}, {3}));
  exec.bind("limit", Tensor::of<int64_t>({}, {10}));
  exec.bind("delta", Tensor::of<int64_t>({}, {3}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(3, 6, 9));
}

TEST(Session, ATooNewFormIsRefusedWithoutAQuery) {
  Graph graph;
  const uint32_t a = graph.input("a", BP_DTYPE_FLOAT16, {});
  const Model model = graph.finish({graph.node("Range", "r", {a, a, a})});  // Range accepts FLOAT16 since opset 27
  const Environment env = environment({kOld});
  const Error error = failure([&] { env.compile(model); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("old (opset)"));
}

TEST(Session, ManyThreadsRunOneSession) {
  const Environment env = environment({kCpu});
  const Session session = env.compile(relu_of_sum());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Exec exec = session.exec();
      for (int i = 0; i < 200; ++i) {
        const float v = static_cast<float>(t * 1000 + i);
        exec.bind("x", Tensor::of<float>({1, 2}, {v, v}));
        exec.run();
        if (exec.output(0u).values<float>() != std::vector<float>{v + 1, std::max(v - 1, 0.0f)}) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, CreatingCanBeCancelled) {
  const Environment env = environment({kCpu});
  const Model model = relu_of_sum();
  const Cancel cancel;
  SessionOptions options;
  options.cancel = &cancel;
  env.compile(model, options);
  cancel.set();
  const Error cancelled = failure([&] { env.compile(model, options); });
  EXPECT_EQ(cancelled.status(), BP_CANCELLED);
  EXPECT_THAT(cancelled.text(), HasSubstr("cancelled while"));
}

TEST(Session, UnknownNamesAreRefused) {
  const Environment env = environment({kCpu});
  const std::string name = "org.example.unknown";
  bp_chain_t link{};
  link.size = sizeof link;
  link.required = 1;
  link.extension = view::text(name);
  bp_session_desc_t desc{};
  desc.size = sizeof desc;
  bp_session_t* session = nullptr;
  const Model model = relu_of_sum();
  desc.flags = 1u << 7;
  EXPECT_EQ(api().session_create(env.get(), model.get(), &desc, &session, nullptr), BP_UNSUPPORTED);
  desc.flags = 0;
  desc.chain = &link;
  EXPECT_EQ(api().session_create(env.get(), model.get(), &desc, &session, nullptr), BP_UNSUPPORTED);
  link.required = 0;
  EXPECT_EQ(api().session_create(env.get(), model.get(), &desc, &session, nullptr), BP_OK);
  api().session_destroy(session);
  link.required = 1;
  bp_model_source_t source{};
  source.size = sizeof source;
  source.descriptor = -1;
  source.chain = &link;
  bp_model_t* none = nullptr;
  EXPECT_EQ(api().model_open(env.get(), &source, &none, nullptr), BP_UNSUPPORTED);
  bp_env_desc_t how{};
  how.size = sizeof how;
  how.flags = 1u << 9;
  bp_env_t* other = nullptr;
  EXPECT_EQ(api().env_create(&how, &other, nullptr), BP_UNSUPPORTED);
}

TEST(Session, PlaceOnlyReportsAndDoesNotRun) {
  const Environment env = environment({kCpu});
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  const Session session = env.compile(relu_of_sum(), how);
  EXPECT_THAT(session.report(), HasSubstr("\"op_type\":\"Relu\""));
  EXPECT_EQ(failure([&] { session.exec(); }).status(), BP_BAD_STATE);
}

TEST(Session, PlaceOnlyReportsUnsupportedNodes) {
  const Environment env = environment({BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so"});
  Graph graph;
  const uint32_t neg = graph.node("Neg", "neg", {graph.input("x", BP_DTYPE_FLOAT, {4})});
  const Model model = graph.finish({graph.node("Relu", "relu", {graph.node("Ceil", "ceil", {neg})})});
  EXPECT_THAT(failure([&] { env.compile(model); }).text(), HasSubstr("'ceil' (Ceil) is supported by no device"));
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  const Session session = env.compile(model, how);
  EXPECT_EQ(session.node(0).island, 0u);
  EXPECT_EQ(session.node(1).device, 0u);
  EXPECT_EQ(session.node(1).island, BP_NONE);
  EXPECT_EQ(session.node(2).island, 1u);
  EXPECT_THAT(session.report(), HasSubstr("\"uncovered\":[1]"));
}

TEST(Session, UnknownDevicesAndOptionsAreNamed) {
  const Environment env = environment({kCpu});
  SessionOptions how;
  how.devices = {"gpu9"};
  Error error = failure([&] { env.compile(relu_of_sum(), how); });
  EXPECT_EQ(error.status(), BP_NOT_FOUND);
  EXPECT_THAT(error.text(), HasSubstr("gpu9"));
  SessionOptions odd;
  odd.options = {{"unknown.threads", "2"}};
  error = failure([&] { env.compile(relu_of_sum(), odd); });
  EXPECT_EQ(error.status(), BP_NOT_FOUND);
  EXPECT_THAT(error.text(), HasSubstr("unknown.threads"));
}

TEST(Session, ReportsThatThereAreNoBackends) {
  const Environment env = environment({});
  const Error error = failure([&] { env.compile(relu_of_sum()); });
  EXPECT_EQ(error.status(), BP_NOT_FOUND);
  EXPECT_THAT(error.text(), HasSubstr("no backend was found"));
  SessionOptions how;
  how.devices = {"cpu"};
  EXPECT_THAT(failure([&] { env.compile(relu_of_sum(), how); }).text(), HasSubstr("no backend was found"));
  const Environment refusing = environment({"/nowhere/backend.json"});
  EXPECT_THAT(failure([&] { refusing.compile(relu_of_sum(), how); }).text(),
              HasSubstr("every backend that was found was refused"));
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support forks of programs with several threads
TEST(Session, AForkedChildIsRefused) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  exec.run();
  const pid_t child = fork();
  if (child == 0) _exit(api().exec_run(exec.get(), nullptr, nullptr) == BP_FORKED ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  exec.run();
}
#endif

TEST(Session, RefusesArraysThatAreNotThere) {
  const Environment env = environment({kCpu});
  const Model model = relu_of_sum();
  const bp_pin_t pin{view::text(std::string_view("*")), view::text(std::string_view("cpu"))};
  const bp_option_t option{view::text(std::string_view("loader.costs")), view::text(std::string_view("reported"))};
  const auto create = [&](const auto& set) {
    bp_session_desc_t desc{};
    desc.size = sizeof desc;
    desc.pin_stride = sizeof pin;
    desc.option_stride = sizeof option;
    desc.symbol_stride = sizeof(bp_symbol_t);
    set(desc);
    bp_session_t* session = nullptr;
    const bp_status_t status = api().session_create(env.get(), model.get(), &desc, &session, nullptr);
    api().session_destroy(session);
    return status;
  };
  EXPECT_EQ(create([&](bp_session_desc_t& d) { d.pins = &pin, d.pin_count = 1; }), BP_OK);
  EXPECT_EQ(create([&](bp_session_desc_t& d) { d.options = &option, d.option_count = 1; }), BP_OK);
  EXPECT_EQ(create([](bp_session_desc_t& d) { d.device_count = 1; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(create([](bp_session_desc_t& d) { d.pin_count = 1; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(create([](bp_session_desc_t& d) { d.option_count = 1; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(create([](bp_session_desc_t& d) { d.symbol_count = 1; }), BP_INVALID_ARGUMENT);
  // A stride of 0 would hide all elements, and the pin would be ignored.
  EXPECT_EQ(create([&](bp_session_desc_t& d) { d.pins = &pin, d.pin_count = 1, d.pin_stride = 0; }),
            BP_INVALID_ARGUMENT);
  EXPECT_EQ(create([&](bp_session_desc_t& d) { d.options = &option, d.option_count = 1, d.option_stride = 8; }),
            BP_INVALID_ARGUMENT);
  bp_device_open_t how{};
  how.size = sizeof how;
  how.option_count = 1;
  how.option_stride = sizeof option;
  EXPECT_EQ(api().env_open_device(env.get(), env.devices()[0].info.id, &how, nullptr), BP_INVALID_ARGUMENT);
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.flags = BP_ENV_ONLY_GIVEN;
  desc.options = &option;
  desc.option_count = 1;
  bp_env_t* other = nullptr;
  EXPECT_EQ(api().env_create(&desc, &other, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
}

TEST(Session, VerdictsAreThoseOfEachDevice) {
  const Environment env = environment({kCpu, kFake}, {{"fake.ops", "Relu"}});
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  const Session session = env.compile(relu_of_sum(), how);
  const uint64_t cpu = env.devices()[0].info.id, fake = env.devices()[1].info.id;
  EXPECT_EQ(session.verdict(0, cpu).answer, BP_ANSWER_YES);
  const bp_node_verdict_t refused = session.verdict(0, fake);
  EXPECT_EQ(refused.answer, BP_ANSWER_NO);
  EXPECT_EQ(refused.reason, BP_REASON_OPERATOR);
  EXPECT_EQ(session.verdict(1, fake).answer, BP_ANSWER_YES);
  EXPECT_EQ(failure([&] { session.verdict(2, cpu); }).status(), BP_NOT_FOUND);
  EXPECT_EQ(failure([&] { session.verdict(0, 1); }).status(), BP_NOT_FOUND);
  const bp_graph_t* graph = api().session_graph(session.get());
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->input_count, 1u);
  EXPECT_EQ(view::text(bp_graph_value(graph, graph->outputs[0])->name), "y");
}

TEST(Session, ConditionalVerdictsHoldWithinTheirRanges) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  const Model model = graph.finish({graph.node("Abs", "y", {x})});
  const Environment env = environment({kFake}, {{"fake.ops", "Abs"}, {"fake.most", "4"}});
  const uint64_t device = env.devices()[0].info.id;
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  EXPECT_EQ(env.compile(model, how).verdict(0, device).reason, BP_REASON_SHAPE);
  how.symbols = {{"n", {1, 5}}};
  EXPECT_EQ(env.compile(model, how).verdict(0, device).reason, BP_REASON_SHAPE);
  how.symbols = {{"n", {1, 4}}};
  EXPECT_EQ(env.compile(model, how).verdict(0, device).answer, BP_ANSWER_CONDITIONAL);
}

// The cost of a node whose extents are open follows from those that are assumed for the inputs, which the report lists.
TEST(Session, CostsFollowFromTheAssumedExtents) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 1000}, {"n", ""});
  const uint32_t both = graph.node("Concat", "both", {x, x}, {{"axis", 0}});
  const Model model = graph.finish({graph.node("Abs", "y", {both})});
  const Environment env = environment({kFake}, {{"fake.ops", "Concat,Abs"}});
  SessionOptions how;
  how.flags = BP_SESSION_PLACE_ONLY;
  how.options["loader.costs"] = "reported";
  const auto seconds = [&] { return env.compile(model, how).node(1).seconds; };
  EXPECT_THAT(env.compile(model, how).report(), HasSubstr(R"("assumed":{"n":64})"));
  const double of_64 = seconds();
  how.symbols = {{"n", {1, 6400}}};
  EXPECT_EQ(seconds(), of_64);
  how.symbols = {{"n", {6400, 6400}}};
  EXPECT_THAT(env.compile(model, how).report(), HasSubstr(R"("assumed":{})"));
  EXPECT_GT(seconds(), 50 * of_64);
}

TEST(Session, RangesOfADimensionMustOverlap) {
  Graph graph;
  const Model model = graph.finish({graph.node("Relu", "y", {graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"})})});
  const Environment env = environment({kCpu});
  const bp_symbol_t ranges[] = {{view::text("n"), 1, 10}, {view::text("n"), 20, 30}};
  bp_session_desc_t desc{};
  desc.size = sizeof desc;
  desc.symbols = ranges;
  desc.symbol_count = 2;
  desc.symbol_stride = sizeof ranges[0];
  bp_session_t* session = nullptr;
  const Error error = failure([&] { detail::call(api().session_create, env.get(), model.get(), &desc, &session); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.what(), HasSubstr("dimension 'n'"));
  EXPECT_EQ(session, nullptr);
}

}  // namespace
}  // namespace backplane
