// SPDX-License-Identifier: Apache-2.0
// Devices that hang. Every wait for such a device ends at the run's deadline, when the run is cancelled, or when the
// device is abandoned. Once it is abandoned, no function of its plugin is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "testing/partial.h"

namespace backplane {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t id_of(const Environment& env, uint32_t device = 0) {
  return env.devices()[1 + device].info.id;  // devices()[0] is the CPU
}

bool wait_until(const std::function<bool()>& is_true) {
  for (int i = 0; i < 30'000; ++i, std::this_thread::sleep_for(1ms))
    if (is_true()) return true;
  return false;
}

// Returns the error of a call that must end. If the call hangs, exits the process, because its thread cannot be
// stopped.
template <class Call>
Error end_of(Call call) {
  auto end = std::async(std::launch::async, [&] { return failure(call); });
  if (end.wait_for(60s) == std::future_status::ready) return end.get();
  std::printf("a call did not return\n");
  std::fflush(stdout);
  std::_Exit(1);
}

// Makes a call, and abandons the device from another thread as soon as `is_true` returns true. Then lets go of the work
// that the device's script holds. Returns the call's error.
template <class Call>
Error end_when_abandoned(const Environment& env, const std::function<bool()>& is_true, Call call) {
  std::thread abandons([&] {
    EXPECT_TRUE(wait_until(is_true));
    env.abandon_device(id_of(env));
    counters(env).let_go = true;
  });
  const Error error = end_of(call);
  abandons.join();
  return error;
}

// A timeout long enough for the run to reach the call that hangs, even on a busy machine: before that call, the loader
// makes a plan and starts threads.
constexpr auto kTimeToHang = 1s;

void bind_x(Exec& exec) {
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
}

bp_run_t signalling(const bp_point_t& signal) {
  bp_run_t run{};
  run.size = sizeof run;
  run.signals = &signal;
  run.signal_count = 1;
  return run;
}

// Whether the first island of a chain has ended and all the rest is in the stream, so that the loader calls the device
// no more.
bool hangs_in_chain(const partial::Counters& counted) {
  return counted.runs == 1 && counted.stream_copies == 2;
}

TEST(Abandon, ARunWithoutADeadlineEnds) {
  const partial::Counters* counted = nullptr;
  {
    const Environment env = streaming({{"partial.fault", "hang@n1#1"}});
    counted = &counters(env);
    const Session session = env.compile(chain(3), pinned({{"*", "partial"}}));
    Exec exec = session.exec(), never_run = session.exec();
    bind_x(exec);
    bind_x(never_run);
    const Error error = end_when_abandoned(
        env, [&] { return hangs_in_chain(*counted); }, [&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_DEVICE_LOST);
    EXPECT_TRUE(error.abandoned());
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
    EXPECT_EQ(failure([&] { never_run.run(); }).status(), BP_DEVICE_LOST);
  }
  EXPECT_EQ(counted->abandoned, 1u);
  EXPECT_EQ(counted->calls_after_abandon, 0u);
}

TEST(Abandon, ARunOnSeveralDevicesEndsAndTheOthersGoOn) {
  for (const std::string marks : {"0", "1"}) {
    const Environment env = streaming({{"partial.devices", "2"},
                                       {"partial.peers", "1"},
                                       {"partial.marks", marks},
                                       {"partial.0.fault", "hang@left#1"}});
    const std::map<std::string, std::string> pins = {{"left", "partial:0"}, {"right", "partial:1"}, {"y", "partial:1"}};
    Exec exec = env.compile(diamond(), pinned(pins)).exec();
    bind_x(exec);
    // Whether the streams hold all work that can be put there while "left" hangs. Then the loader calls no device.
    const auto is_in_streams = [&] {
      const partial::Counters &first = counters(env, 0), &second = counters(env, 1);
      return first.stream_runs == 1 && second.stream_runs == (marks == "1" ? 2u : 1u) &&
             second.stream_copies == (marks == "1" ? 3u : 1u);
    };
    const Error error = end_when_abandoned(env, is_in_streams, [&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_DEVICE_LOST) << error.text();
    EXPECT_TRUE(error.abandoned());
    EXPECT_EQ(counters(env, 0).abandoned, 1u);
    EXPECT_EQ(counters(env, 1).abandoned, marks == "1" ? 1u : 0u);  // its stream waits for a mark of the first device
    EXPECT_EQ(counters(env, 0).calls_after_abandon + counters(env, 1).calls_after_abandon, 0u);
    SessionOptions rest;
    rest.devices = {marks == "1" ? "cpu" : "partial:1"};
    Exec later = env.compile(diamond(), rest).exec();
    bind_x(later);
    later.run();
  }
}

TEST(Abandon, ASubmittedRunEnds) {
  const Environment env = streaming({{"partial.fault", "hang@n1#1"}});
  const Semaphore ended;
  std::optional<Exec> exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  bind_x(*exec);
  const bp_point_t signal = ended.at(1);
  exec->submit(signalling(signal));
  const auto is_running = [&] { return hangs_in_chain(counters(env)); };
  EXPECT_EQ(end_when_abandoned(env, is_running, [&] { ended.wait(1); }).status(), BP_DEPENDENCY_FAILED);
  EXPECT_EQ(end_of([&] { exec.reset(); }).status(), BP_OK);
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

TEST(Abandon, AWaitForAStreamEnds) {
  const Environment env = streaming({{"partial.fault", "hang@n1#1"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  bind_x(exec);
  const Stream stream = env.stream(id_of(env));
  RunOptions how;
  how.stream = &stream;
  exec.run(how);
  // A bind waits for the stream too.
  std::thread binds([&] { EXPECT_EQ(end_of([&] { bind_x(exec); }).status(), BP_OK); });
  const auto is_running = [&] { return counters(env).runs == 1; };
  EXPECT_EQ(end_when_abandoned(env, is_running, [&] { stream.wait(); }).status(), BP_DEVICE_LOST);
  binds.join();
  bp_stream_t* handle = nullptr;
  EXPECT_EQ(api().stream_plugin_stream(stream.get(), &handle, nullptr), BP_DEVICE_LOST);
  bp_native_t native{};
  native.size = sizeof native;
  EXPECT_EQ(api().stream_export(stream.get(), &native, nullptr), BP_DEVICE_LOST);
}

TEST(Abandon, WaitsForPointsOfADeviceEnd) {
  const Environment env = streaming({{"partial.marks", "1"}});
  const NativeSemaphore semaphore(env.get(), id_of(env));
  Exec exec = env.compile(chain(1), pinned({{"*", "cpu"}})).exec();
  bind_x(exec);
  const auto soon = [begin = std::chrono::steady_clock::now()] {  // by then the wait has probably begun
    return std::chrono::steady_clock::now() - begin > 30ms;
  };
  EXPECT_EQ(end_when_abandoned(env, soon, [&] { semaphore.wait(1); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(failure([&] { semaphore.wait(0); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(failure([&] { semaphore.signal(1); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(failure([&] { semaphore.value(); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(failure([&] { semaphore.native(); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(failure([&] { semaphore.plugin_semaphore(); }).status(), BP_DEVICE_LOST);
  RunOptions how;
  how.waits = {semaphore.at(1)};
  EXPECT_EQ(end_of([&] { exec.run(how); }).status(), BP_DEVICE_LOST);
  how = {};
  how.signals = {semaphore.at(1)};
  EXPECT_EQ(failure([&] { exec.run(how); }).status(), BP_DEVICE_LOST);
  exec.run();
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
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

// The device runs nothing after the first failover, so there is no second one.
TEST(Abandon, ARunOnMemoryOfTheDeviceEnds) {
  const Environment env = streaming({});
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  how.fallback = BP_FALLBACK_PREFER;
  Exec exec = env.compile(chain(2), how).exec();
  const Buffer x = env.allocate(id_of(env), 12);
  exec.bind_memory(0, x.tensor(BP_DTYPE_FLOAT, {3}));
  exec.run();
  env.abandon_device(id_of(env));
  EXPECT_EQ(end_of([&] { exec.run(); }).status(), BP_DEVICE_LOST);
  bind_x(exec);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
}

TEST(Abandon, LaterSessionsUseTheOtherDevices) {
  const Environment env = streaming({});
  const Model model = chain(1);
  env.abandon_device(id_of(env));
  Exec exec = env.compile(model).exec();
  bind_x(exec);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, 2, -3));
  SessionOptions how;
  how.devices = {"partial"};
  EXPECT_EQ(failure([&] { env.compile(model, how); }).status(), BP_DEVICE_LOST);
}

TEST(Abandon, PinsToADeviceThatWasGivenUpSaySo) {
  const Environment env = streaming({});
  env.abandon_device(id_of(env));
  for (const std::string name : {"partial", "partial:0"}) {
    const Error error = failure([&] { env.compile(chain(1), pinned({{"n0", name}})); });
    EXPECT_EQ(error.status(), BP_DEVICE_LOST);
    EXPECT_THAT(error.text(), AllOf(HasSubstr("pin 'n0'"), HasSubstr("device partial was reported to hang")));
  }
  EXPECT_EQ(failure([&] { env.compile(chain(1), pinned({{"n0", "other"}})); }).status(), BP_NOT_FOUND);
  env.compile(chain(1), pinned({{"n1", "partial"}}));  // the pin matches no node
}

// The operator Same of the partial backend has no schema, so the loader would call the device once more after the
// coverage query, for the types of the outputs.
TEST(Abandon, NothingMoreIsCalledWhileDevicesAreQueried) {
  const Environment env = streaming({{"partial.held", "query"}});
  Builder builder(std::map<std::string, uint32_t>{{"", 21}, {"org.backplane.test", 1}});
  NodeOptions how;
  how.domain = "org.backplane.test";
  builder.output(builder.node("Same", {builder.input("x", BP_DTYPE_FLOAT, {3})}, how));
  const Model model = builder.finish();
  streaming({}).compile(model, pinned({{"*", "partial"}}));  // needs the types
  const auto is_asked = [&] { return counters(env).queries_begun == 1; };
  EXPECT_EQ(end_when_abandoned(env, is_asked, [&] { env.compile(model, pinned({})); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

TEST(Abandon, NothingMoreIsCalledWhileIslandsAreCompiled) {
  std::string folder = ::testing::TempDir() + "backplane_abandon_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  EnvironmentOptions one_thread;  // no other thread is about to call the device when it is abandoned
  one_thread.backend_files = {kCpuFile, kPartialFile};
  one_thread.only_given = true;
  one_thread.threads = 1;
  one_thread.options = {{"partial.async", "1"},      {"partial.max_nodes", "1"}, {"partial.memory", "own"},
                        {"partial.held", "compile"}, {"partial.cache", "1"},     {"loader.cache", folder}};
  const Environment env(one_thread);
  const auto compiles = [&] { return counters(env).compiles_begun > 0; };
  const auto compile = [&] { env.compile(chain(3), pinned({{"*", "partial"}})); };
  EXPECT_EQ(end_when_abandoned(env, compiles, compile).status(), BP_DEVICE_LOST);
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
  std::filesystem::remove_all(folder);
}

// ---- copies without a run -------------------------------------------------------------------------------------------

void copy_without_a_run(const Environment& env, const Buffer& to, std::array<float, 3>& values) {
  bp_buffer_t from{};
  from.address = values.data();
  from.bytes = to.abi().bytes;
  env.copy(from, to.abi(), from.bytes);
}

TEST(Abandon, ACopyWithoutARunEnds) {
  const Environment env = streaming({{"partial.hang_copy", "2"}});
  const Buffer buffer = env.allocate(id_of(env), 12);
  std::array<float, 3> values{1, 2, 3};
  copy_without_a_run(env, buffer, values);
  const auto hangs = [&] { return counters(env).copies_begun == 2; };
  const Error error = end_when_abandoned(env, hangs, [&] { copy_without_a_run(env, buffer, values); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_TRUE(error.device_lost());
  EXPECT_TRUE(error.abandoned());
  const Error refused = failure([&] { copy_without_a_run(env, buffer, values); });
  EXPECT_EQ(refused.status(), BP_DEVICE_LOST);
  EXPECT_FALSE(refused.abandoned());
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

TEST(Abandon, AFillWithoutARunEnds) {
  const Environment env = streaming({{"partial.hang_copy", "1"}});
  const Buffer buffer = env.allocate(id_of(env), 12);
  const auto hangs = [&] { return counters(env).copies_begun == 1; };
  EXPECT_EQ(end_when_abandoned(env, hangs, [&] { buffer.fill(1.0f); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

// The devices are not peers, so the copy takes two steps. The other device is not called for the second step.
TEST(Abandon, ACopyThroughHostMemoryEnds) {
  const Environment env = streaming({{"partial.devices", "2"}, {"partial.0.hang_copy", "1"}});
  const Buffer from = env.allocate(id_of(env, 0), 12), to = env.allocate(id_of(env, 1), 12);
  const auto hangs = [&] { return counters(env, 0).copies_begun == 1; };
  const auto copy = [&] { env.copy(from.abi(), to.abi(), 12); };
  EXPECT_EQ(end_when_abandoned(env, hangs, copy).status(), BP_DEVICE_LOST);
  EXPECT_EQ(counters(env, 1).copies_begun, 0u);
}

TEST(Abandon, ARefitFromADeviceEnds) {
  const Environment env = streaming({{"partial.hang_copy", "1"}});
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3}), w = graph.weight("w", Tensor::of<float>({1}, {2}));
  SessionOptions how = pinned({{"*", "cpu"}});
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(graph.finish({graph.node("Mul", "y", {x, w})}), how);
  const Buffer buffer = env.allocate(id_of(env), 4);
  const std::vector<int64_t> extents{1};
  const bp_tensor_t tensor = buffer.tensor(BP_DTYPE_FLOAT, extents);
  const bp_named_tensor_t weight{view::text(std::string_view("w")), &tensor};
  const bp_session_refit_t what{sizeof what, 1, &weight, sizeof weight, 0, nullptr};
  const auto hangs = [&] { return counters(env).copies_begun == 1; };
  const auto refit = [&] { detail::call(api().session_refit, session.get(), &what); };
  EXPECT_EQ(end_when_abandoned(env, hangs, refit).status(), BP_DEVICE_LOST);
}

// Copies are measured by the first session on a machine, so each test starts with no costs stored.
class MeasuredCopies : public ::testing::Test {
 protected:
  MeasuredCopies() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    if (const char* const before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~MeasuredCopies() override {
    before_ ? ::setenv("XDG_CACHE_HOME", before_->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  const Environment env = streaming({{"partial.hang_copy", "3"}});
  const std::function<bool()> hangs = [&] { return counters(env).copies_begun == 3; };

 private:
  std::string folder_ = ::testing::TempDir() + "backplane_copies_XXXXXX";
  std::optional<std::string> before_;
};

TEST_F(MeasuredCopies, ThatDoNotEndCostTheDevice) {
  const Error error = end_of([&] { env.compile(chain(1)); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_THAT(error.text(), HasSubstr("device partial did not end a copy of 4096 bytes in 5 s"));
  EXPECT_EQ(counters(env).abandoned, 1u);
  Exec exec = env.compile(chain(1)).exec();
  bind_x(exec);
  exec.run();
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

TEST_F(MeasuredCopies, EndWhenTheSessionIsCancelled) {
  const Cancel cancel;
  SessionOptions how;
  how.cancel = &cancel;
  std::thread cancels([&] {
    wait_until(hangs);
    cancel.set();
  });
  EXPECT_EQ(end_of([&] { env.compile(chain(1), how); }).status(), BP_CANCELLED);
  cancels.join();
  EXPECT_EQ(counters(env).abandoned, 1u);
  const Error later = end_of([&] { env.allocate(id_of(env), 12); });
  EXPECT_THAT(later.text(),
              HasSubstr("device partial did not end a copy of 4096 bytes within 1 s after a cancellation"));
}

TEST_F(MeasuredCopies, EndWhenTheDeviceIsAbandoned) {
  EXPECT_EQ(end_when_abandoned(env, hangs, [&] { env.compile(chain(1)); }).status(), BP_DEVICE_LOST);
  EXPECT_EQ(counters(env).calls_after_abandon, 0u);
}

// ---- deadlines ------------------------------------------------------------------------------------------------------

// A run hangs in a stream. Later runs, without a stream or in another one, wait for it and time out, but the device is
// not abandoned.
TEST(Deadline, HoldsWhileARunWaitsForAStream) {
  const Environment env = streaming({{"partial.fault", "hang@n1#1"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  bind_x(exec);
  const Stream stream = env.stream(id_of(env)), second = env.stream(id_of(env));
  RunOptions how;
  how.stream = &stream;
  exec.run(how);
  wait_until([&] { return counters(env).runs == 1; });
  how = {};
  how.timeout = 50ms;
  const Error late = end_of([&] { exec.run(how); });
  EXPECT_EQ(late.status(), BP_TIMED_OUT);
  EXPECT_FALSE(late.abandoned());
  how.stream = &second;
  EXPECT_EQ(end_of([&] { exec.run(how); }).status(), BP_TIMED_OUT);
  const Cancel cancel;
  cancel.set();
  how = {};
  how.cancel = &cancel;
  EXPECT_EQ(end_of([&] { exec.run(how); }).status(), BP_CANCELLED);
  EXPECT_EQ(counters(env).runs, 1u);
  EXPECT_EQ(counters(env).abandoned, 0u);
  env.abandon_device(id_of(env));
}

// The island takes half a second, regardless of the deadline.
TEST(Deadline, ALateDeviceGoesOnWithinTheGraceOfTheEnvironment) {
  const Environment env = streaming({{"partial.fault", "late@n1#1"}, {"loader.abandon_after", "30000"}});
  Exec exec = env.compile(chain(8), pinned({{"*", "partial"}})).exec();
  bind_x(exec);
  RunOptions how;
  how.timeout = 50ms;
  const Error late = end_of([&] { exec.run(how); });
  EXPECT_EQ(late.status(), BP_TIMED_OUT) << late.text();
  EXPECT_FALSE(late.abandoned());
  EXPECT_EQ(counters(env).abandoned, 0u);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
}

// A run in a stream may fail with BP_TIMED_OUT, which a wait also returns at its own deadline.
TEST(Deadline, OfARunInAStreamIsReportedByTheWait) {
  const Environment env = streaming({{"partial.fault", "hang@n1#1"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  bind_x(exec);
  const Stream stream = env.stream(id_of(env));
  RunOptions how;
  how.stream = &stream;
  how.timeout = 120ms;
  exec.run(how);
  const Error error = end_of([&] { stream.wait(); });
  EXPECT_EQ(error.status(), BP_TIMED_OUT);
  EXPECT_TRUE(error.of_run());
  stream.wait();  // the failure is reported only once
}

// Each run makes two copies: x to the device, and x to the second output after all islands have ended.
TEST(Deadline, HoldsForCopiesOfOutputs) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const Model model = graph.finish({graph.node("Neg", "a", {x}), x});
  for (const bool by_deadline : {true, false}) {
    const Environment env = streaming({{"partial.hang_copy", "4"}});
    const Session session = env.compile(model, pinned({{"*", "partial"}}));
    Exec exec = session.exec();
    const Buffer first = env.allocate(id_of(env), 12), second = env.allocate(id_of(env), 12);
    bind_x(exec);
    exec.bind_memory(BP_SLOT_OUTPUT, first.tensor(BP_DTYPE_FLOAT, {3}));
    exec.bind_memory(BP_SLOT_OUTPUT + 1, second.tensor(BP_DTYPE_FLOAT, {3}));
    exec.run();
    EXPECT_EQ(counters(env).copies, 2u);
    EXPECT_EQ(counters(env).stream_copies, 2u);
    RunOptions how;
    if (by_deadline) how.timeout = kTimeToHang;
    const auto hangs = [&] { return counters(env).copies_begun == 4; };
    const Error late =
        by_deadline ? end_of([&] { exec.run(how); }) : end_when_abandoned(env, hangs, [&] { exec.run(); });
    EXPECT_EQ(late.status(), by_deadline ? BP_TIMED_OUT : BP_DEVICE_LOST);
    EXPECT_TRUE(late.abandoned());
    EXPECT_EQ(counters(env).abandoned, 1u);
  }
}

// The two islands are independent, so tasks run concurrently.
TEST(Deadline, HoldsForCopiesWhileOtherTasksRun) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3}), z = graph.input("z", BP_DTYPE_FLOAT, {3});
  const Model model = graph.finish({graph.node("Neg", "a", {x}), graph.node("Abs", "b", {z})});
  for (const std::string number : {"1", "2"}) {
    const Environment env = streaming({{"partial.hang_copy", number}});
    Exec exec = env.compile(model, pinned({{"a", "partial"}, {"b", "cpu"}})).exec();
    bind_x(exec);
    exec.bind("z", Tensor::of<float>({3}, {1, -2, 3}));
    RunOptions how;
    how.timeout = kTimeToHang;
    const Error late = end_of([&] { exec.run(how); });
    EXPECT_EQ(late.status(), BP_TIMED_OUT);
    EXPECT_TRUE(late.abandoned());
  }
}

// The device runs no island and makes only one copy.
TEST(Deadline, HoldsForTheOnlyCopyOfADevice) {
  const Environment env = streaming({{"partial.hang_copy", "1"}});
  Exec exec = env.compile(chain(1), pinned({{"*", "cpu"}})).exec();
  const Buffer x = env.allocate(id_of(env), 12);
  exec.bind_memory(0, x.tensor(BP_DTYPE_FLOAT, {3}));
  RunOptions how;
  how.timeout = kTimeToHang;
  const Error late = end_of([&] { exec.run(how); });
  EXPECT_EQ(late.status(), BP_TIMED_OUT);
  EXPECT_TRUE(late.abandoned());
  EXPECT_EQ(counters(env).abandoned, 1u);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
}

// With a deadline, large islands run outside of streams and signal no marks, so the other device must not wait for any.
TEST(Deadline, LargeIslandsOfSeveralDevicesFollowEachOther) {
  const Environment env =
      streaming({{"partial.devices", "2"}, {"partial.peers", "1"}, {"partial.marks", "1"}, {"partial.max_nodes", "8"}});
  std::map<std::string, std::string> pins;
  for (int i = 0; i < 18; ++i) pins["n" + std::to_string(i)] = i / 6 == 1 ? "partial:1" : "partial:0";
  Exec exec = env.compile(chain(18), pinned(pins)).exec();
  bind_x(exec);
  RunOptions how;
  how.timeout = 20s;
  exec.run(how);
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
  exec.run();
  exec.run(how);
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
}

}  // namespace
}  // namespace backplane
