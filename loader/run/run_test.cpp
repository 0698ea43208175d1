// SPDX-License-Identifier: Apache-2.0
// Runs over several devices with their own memories, through the public API: partial devices
// (testing/partial_backend) and the CPU backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "backplane/client.hpp"
#include "testing/allocation_count.h"
#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// y = -|-x|; tests choose a device for each node.
Model chain_of_three() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  const uint32_t a = graph.node("Neg", "a", {x});
  const uint32_t b = graph.node("Abs", "b", {a});
  return graph.finish({graph.node("Neg", "y", {b})});
}

std::vector<float> run(Exec& exec, const std::vector<float>& x) {
  exec.bind("x", Tensor::of<float>({static_cast<int64_t>(x.size())}, x));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Run, CopiesToAndFromADevicesOwnMemory) {
  const Environment env = partial_environment({{"partial.memory", "own"}});
  Exec exec = env.compile(chain_of_three(), pinned({{"b", "partial"}, {"a", "cpu"}, {"y", "cpu"}})).exec();
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, -2, -3));
  EXPECT_EQ(counters(env).copies, 2u);
  EXPECT_EQ(counters(env).copied_bytes, 24u);
  EXPECT_THAT(run(exec, {4, -5}), ElementsAre(-4, -5));  // smaller: the memory is reused
  EXPECT_EQ(counters(env).allocations, 1u);
}

TEST(Run, InputsAndOutputsOfTheGraphAreCopiedToo) {
  const Environment env = partial_environment({{"partial.memory", "own"}});
  Exec exec = env.compile(chain_of_three(), pinned({{"*", "partial"}})).exec();
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, -2, -3));
  EXPECT_EQ(counters(env).copies, 2u);
}

TEST(Run, IdsFrom2To63AreTheLoadersOwn) {
  const Environment env = partial_environment({});
  Exec exec = env.compile(chain_of_three(), pinned({{"*", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({1}, {1}));
  bp_run_t run{};
  run.size = sizeof run;
  run.id = uint64_t{1} << 63;
  EXPECT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_INVALID_ARGUMENT);
  --run.id;
  EXPECT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
}

TEST(Run, DevicesCopyThroughTheHostUnlessTheyArePeers) {
  for (const bool peers : {false, true}) {
    const Environment env = partial_environment(
        {{"partial.devices", "2"}, {"partial.memory", "own"}, {"partial.peers", peers ? "1" : "0"}});
    Exec exec =
        env.compile(chain_of_three(), pinned({{"a", "partial:0"}, {"b", "partial:1"}, {"y", "partial:0"}})).exec();
    EXPECT_THAT(run(exec, {1, -2}), ElementsAre(-1, -2));
    // x and y are copied once each; the two values between islands once each, or twice through host memory.
    EXPECT_EQ(counters(env, 0).copies + counters(env, 1).copies, peers ? 4u : 6u);
  }
}

// A device that imports host memory has a value as soon as host memory has it; a peer that does not import gets a copy.
TEST(Run, PeersWithMemoryOfDifferentKindsHaveTheSameValues) {
  for (const std::string first : {"host", "own", "shared", "flushed"})
    for (const std::string second : {"host", "own", "shared", "flushed"})
      for (const std::string async : {"0", "1"}) {
        const Environment env = partial_environment({{"partial.devices", "2"},
                                                     {"partial.peers", "1"},
                                                     {"partial.async", async},
                                                     {"partial.0.memory", first},
                                                     {"partial.1.memory", second}});
        Graph graph;
        const uint32_t a = graph.node("Neg", "a", {graph.input("x", BP_DTYPE_FLOAT, {4})});
        const Model model = graph.finish({a, graph.node("Neg", "b", {a})});
        Exec exec = env.compile(model, pinned({{"a", "partial:1"}, {"b", "partial:0"}})).exec();
        for (const float x : {1, 5}) {
          exec.bind("x", Tensor::of<float>({4}, {x, 2, 3, 4}));
          exec.run();
          EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-x, -2, -3, -4)) << first << second << async;
          EXPECT_THAT(exec.output(1u).values<float>(), ElementsAre(x, 2, 3, 4)) << first << second << async;
        }
      }
}

TEST(Run, ADeviceThatSharesHostMemoryCopiesNothing) {
  for (const std::string kind : {"shared", "flushed"}) {
    const Environment env = partial_environment({{"partial.memory", kind}});
    Exec exec = env.compile(chain_of_three(), pinned({{"b", "partial"}, {"a", "cpu"}, {"y", "cpu"}})).exec();
    EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, -2, -3));
    EXPECT_THAT(run(exec, {-7, 8, 9}), ElementsAre(-7, -8, -9));
    EXPECT_EQ(counters(env).copies, 0u);
    EXPECT_EQ(counters(env).allocations, 0u);
    EXPECT_EQ(counters(env).flushes, kind == "flushed" ? 4u : 0u);  // two runs, each with one input and one output
  }
}

// The memory of values between islands, and of outputs that are not bound, grows with the extents.
TEST(Run, HostMemoryStaysAllocatedWhileADeviceImportsIt) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  const uint32_t a = graph.node("Neg", "a", {x});
  const uint32_t b = graph.node("Add", "b", {graph.node("Neg", "between", {a}), graph.node("Abs", "other", {a})});
  const Model model = graph.finish({a, b});
  for (const std::string kind : {"shared", "flushed"}) {
    const Environment env = partial_environment({{"partial.memory", kind}, {"partial.touches", "1"}});
    Exec exec =
        env.compile(model, pinned({{"a", "cpu"}, {"between", "partial"}, {"other", "partial"}, {"b", "cpu"}})).exec();
    for (const size_t n : {size_t{1} << 18, size_t{1} << 20}) {
      run(exec, std::vector<float>(n, 2));
      EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(n, -2));
      EXPECT_EQ(exec.output(1u).values<float>(), std::vector<float>(n, 4));
    }
  }
}

TEST(Run, BuffersThatCannotBeSharedAreCopied) {
  const Environment env = partial_environment({{"partial.memory", "shared"}});
  Exec exec = env.compile(chain_of_three(), pinned({{"*", "partial"}})).exec();
  const Tensor whole = Tensor::of<float>({4}, {0, 1, -2, 3});
  bp_tensor_t odd = whole.abi();  // starts 4 bytes into its memory: the device imports only from multiples of 64
  const int64_t extent = 3;
  odd.extents = &extent;
  odd.buffer.offset = 4;
  odd.buffer.bytes = 12;
  detail::call(api().exec_bind, exec.get(), 0u, static_cast<const bp_tensor_t*>(&odd));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, -2, -3));
  EXPECT_EQ(counters(env).copies, 1u);
}

TEST(Run, TheFrameworkBindsMemoryOfADevice) {
  const Environment env = partial_environment({{"partial.memory", "own"}});
  const uint64_t device = env.devices().back().info.id;
  Exec exec = env.compile(chain_of_three(), pinned({{"*", "partial"}})).exec();
  const Buffer x = env.allocate(device, 8), y = env.allocate(device, 8);
  exec.bind_memory(0, x.tensor(BP_DTYPE_FLOAT, {2}));
  exec.bind_memory(BP_SLOT_OUTPUT, y.tensor(BP_DTYPE_FLOAT, {2}));
  float values[2] = {3, -4};
  bp_buffer_t host{};
  host.address = values;
  host.bytes = sizeof values;
  env.copy(host, x.abi(), 8);
  exec.run();
  env.copy(y.abi(), host, 8);
  EXPECT_THAT(values, ElementsAre(-3, -4));
  EXPECT_EQ(counters(env).copies, 2u);  // only the copies that the test makes
}

TEST(Run, IndependentIslandsRunAtTheSameTime) {
  for (const std::string async : {"0", "1"}) {
    for (const std::string memory : {"host", "own"}) {
      const Environment env = partial_environment(
          {{"partial.devices", "2"}, {"partial.memory", memory}, {"partial.async", async}, {"partial.meet", "2"}});
      Exec exec = env.compile(diamond(), pinned({{"left", "partial:0"}, {"right", "partial:1"}, {"y", "cpu"}})).exec();
      EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(0, 4, 0));
      EXPECT_EQ(std::max(counters(env, 0).at_once.load(), counters(env, 1).at_once.load()), 2u) << async << memory;
    }
  }
}

TEST(Run, ManyIslandsInTurnOnThreeDevices) {
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
  uint32_t sum = value;
  std::map<std::string, std::string> pins;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "n" + std::to_string(i);
    value = graph.node("Neg", name, {value});
    sum = graph.node("Sub", "s" + std::to_string(i), {value, sum});
    pins[name] = "partial:" + std::to_string(i % 2);
    pins["s" + std::to_string(i)] = i % 3 ? "cpu" : "partial:1";
  }
  const Model model = graph.finish({sum, value});
  Exec alone = environment({kCpuFile}).compile(model).exec();
  for (const std::string async : {"0", "1"}) {
    const Environment env = partial_environment({{"partial.devices", "2"},
                                                 {"partial.0.memory", "own"},
                                                 {"partial.1.memory", "flushed"},
                                                 {"partial.async", async},
                                                 {"partial.run_us", "100"},
                                                 {"partial.copy_us", "200"}});
    Exec exec = env.compile(model, pinned(pins)).exec();
    for (float x = 0; x < 5; ++x) EXPECT_EQ(run(exec, {x, -x, 1}), run(alone, {x, -x, 1}));
  }
}

TEST(Run, ExtentsThatDataDecideCrossMemories) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4});
  const uint32_t where = graph.node("NonZero", "where", {x});
  const uint32_t twice = graph.node("Add", "twice", {where, where});
  const Model model = graph.finish({graph.node("Neg", "y", {twice}), where});
  for (const std::string memory : {"own", "shared", "flushed"}) {
    const Environment env = partial_environment({{"partial.devices", "2"}, {"partial.memory", memory}});
    Exec exec = env.compile(model, pinned({{"where", "partial:0"}, {"twice", "partial:1"}, {"y", "cpu"}})).exec();
    const auto run = [&](const std::vector<float>& x) {
      exec.bind("x", Tensor::of<float>({4}, x));
      exec.run();
    };
    run({0, 5, 0, 6});
    EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{1, 2}));
    EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(-2, -6));
    EXPECT_THAT(exec.output(1u).values<int64_t>(), ElementsAre(1, 3));
    run({0, 5, 7, 6});
    EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(-2, -4, -6));
    run({0, 0, 0, 0});
    EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{1, 0}));
  }
}

TEST(Run, ExtentsThatWereRunBeforeAreNotAskedAgain) {
  const Environment env = partial_environment({{"partial.memory", "own"}});
  Exec exec = env.compile(chain_of_three(), pinned({{"*", "partial"}})).exec();
  for (int i = 0; i < 3; ++i)
    for (const std::vector<float>& x : {std::vector<float>{1}, {1, 2}, {1, 2, 3}})
      EXPECT_EQ(run(exec, x).size(), x.size());
  EXPECT_EQ(counters(env).shape_queries, 3u);
}

TEST(Run, ABoundRunAllocatesNothing) {
  for (const std::string memory : {"host", "own", "shared"}) {
    for (const std::string async : {"0", "1"}) {
      const Environment env =
          partial_environment({{"partial.devices", "2"}, {"partial.memory", memory}, {"partial.async", async}});
      Exec exec = env.compile(diamond(), pinned({{"left", "partial:0"}, {"right", "partial:1"}, {"y", "cpu"}})).exec();
      Tensor y(BP_DTYPE_FLOAT, {3});
      Tensor x = Tensor::of<float>({3}, {1, -2, 3});
      exec.bind("x", x);
      exec.bind_output("y", y);
      for (int warm = 0; warm < 3; ++warm) exec.run();
      const uint64_t binds = counters(env).binds + counters(env, 1).binds;
      // A stream allocates when it holds more work than ever before. It may take a few runs until that no longer
      // happens.
      uint64_t allocated = 1;
      for (int round = 0; round < 10 && allocated != 0; ++round) {
        const uint64_t before = allocation_count();
        for (int i = 0; i < 20; ++i) api().exec_run(exec.get(), nullptr, nullptr);
        allocated = allocation_count() - before;
      }
      EXPECT_EQ(allocated, 0u) << memory << async;
      EXPECT_EQ(counters(env).binds + counters(env, 1).binds, binds);
      EXPECT_THAT(y.values<float>(), ElementsAre(0, 4, 0));
    }
  }
}

TEST(Run, TheTraceDistinguishesCopiesFromSharing) {
  for (const std::string memory : {"own", "shared"}) {
    const Environment env = partial_environment({{"partial.memory", memory}});
    Exec exec = env.compile(chain_of_three(), pinned({{"b", "partial"}, {"a", "cpu"}, {"y", "cpu"}})).exec();
    env.start_trace();
    run(exec, {1, -2, 3});
    const std::string timeline = env.stop_trace();
    EXPECT_THAT(timeline, HasSubstr(memory == "own" ? "copy 'a'" : "shared 'a'"));
    EXPECT_THAT(timeline, Not(HasSubstr(memory == "own" ? "shared '" : "copy '")));
  }
}

TEST(Run, AFailureOfOneDeviceEndsTheOthers) {
  const Environment env = partial_environment({{"partial.devices", "2"},
                                               {"partial.async", "1"},
                                               {"partial.0.fault", "hang@left#1"},
                                               {"partial.1.fault", "exhausted@right#1"}});
  Exec exec = env.compile(diamond(), pinned({{"left", "partial:0"}, {"right", "partial:1"}, {"y", "cpu"}})).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED);
  EXPECT_THAT(error.text(), HasSubstr("node 'right' (Abs): device 'partial:1': scripted scarcity"));
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(0, 4, 0));  // the next run is not affected
}

TEST(Run, DeadlinesAndCancellationEndAHang) {
  for (const std::string async : {"0", "1"}) {
    const Environment env = partial_environment({{"partial.async", async}, {"partial.fault", "hang@b#1"}});
    Exec exec = env.compile(chain_of_three(), pinned({{"b", "partial"}, {"a", "cpu"}, {"y", "cpu"}})).exec();
    exec.bind("x", Tensor::of<float>({1}, {1}));
    RunOptions late;
    late.timeout = std::chrono::milliseconds(30);
    EXPECT_EQ(failure([&] { exec.run(late); }).status(), BP_TIMED_OUT);
  }
  const Environment env = partial_environment({{"partial.async", "1"}, {"partial.fault", "hang@b#1"}});
  Exec exec = env.compile(chain_of_three(), pinned({{"b", "partial"}, {"a", "cpu"}, {"y", "cpu"}})).exec();
  exec.bind("x", Tensor::of<float>({1}, {1}));
  const Cancel cancel;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel.set();
  });
  RunOptions options;
  options.cancel = &cancel;
  EXPECT_EQ(failure([&] { exec.run(options); }).status(), BP_CANCELLED);
  canceller.join();
}

// Options with which device 0 runs Neg, device 1 runs Abs, and device 2 also runs Abs, but at a high cost.
std::map<std::string, std::string> with_a_spare(const std::string& fault) {
  return {{"partial.devices", "3"}, {"partial.seconds", "1e-6"}, {"partial.0.ops", "Neg"},  {"partial.1.ops", "Abs"},
          {"partial.2.ops", "Abs"}, {"partial.2.seconds", "1"},  {"partial.1.fault", fault}};
}

SessionOptions on_partial_devices(uint32_t fallback = BP_FALLBACK_ALLOW) {
  SessionOptions how;
  how.devices = {"partial:0", "partial:1", "partial:2"};
  how.fallback = fallback;
  return how;
}

TEST(Run, AFaultInTheSecondOfThreeIslandsIsRunElsewhere) {
  for (const std::string fault : {"lost@b#2", "internal@b#2"}) {
    for (const std::string memory : {"host", "own"}) {
      for (const std::string async : {"0", "1"}) {
        auto options = with_a_spare(fault);
        options["partial.memory"] = memory;
        options["partial.async"] = async;
        const Environment env = partial_environment(options);
        const Session session = env.compile(chain_of_three(), on_partial_devices());
        Exec exec = session.exec(), other = session.exec();
        EXPECT_EQ(session.node(1).device, env.devices()[2].info.id);
        EXPECT_THAT(session.report(), HasSubstr("\"faults\":[]"));
        EXPECT_THAT(run(exec, {1, -2}), ElementsAre(-1, -2));
        RunOptions bounded;
        bounded.timeout = std::chrono::seconds(10);
        exec.bind("x", Tensor::of<float>({2}, {3, -4}));
        exec.run(bounded);  // the fault occurs in this run
        EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-3, -4));
        EXPECT_EQ(session.node(1).device, env.devices()[3].info.id);
        const std::string what = fault == "lost@b#2" ? "is no longer used" : "no longer runs node 'b' (Abs)";
        EXPECT_THAT(session.report(), HasSubstr("\"faults\":[\"device 'partial:1' " + what + ": it failed in a run: "));
        EXPECT_THAT(run(exec, {5}), ElementsAre(-5));
        EXPECT_THAT(run(other, {6}), ElementsAre(-6));
        Exec fresh = session.exec();
        EXPECT_THAT(run(fresh, {7}), ElementsAre(-7));
        EXPECT_EQ(counters(env, 0).compiles, 2u);  // programs that still fit are not compiled again
        EXPECT_EQ(counters(env, 2).compiles, 1u);
      }
    }
  }
}

TEST(Run, AFaultIsReportedIfOtherDevicesAreForbidden) {
  for (const std::string fault : {"lost", "internal"}) {
    const Environment env =
        partial_environment({{"partial.max_nodes", "1"}, {"partial.fault", fault + "@b#1"}});  // one node per island
    SessionOptions how;
    how.devices = {"partial"};
    how.fallback = BP_FALLBACK_FORBID;
    const Session session = env.compile(chain_of_three(), how);
    EXPECT_EQ(session.node(2).island, 2u);
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({1}, {1}));
    RunOptions bounded;
    bounded.timeout = std::chrono::seconds(10);
    const Error error = failure([&] { exec.run(bounded); });
    EXPECT_EQ(error.status(), fault == "lost" ? BP_DEVICE_LOST : BP_INTERNAL);
    EXPECT_EQ(error.device_lost(), fault == "lost");
    EXPECT_THAT(error.text(), HasSubstr("node 'b' (Abs)"));
    EXPECT_THAT(error.text(), HasSubstr("device 'partial'"));
    EXPECT_THAT(session.report(), HasSubstr("\"faults\":[]"));
  }
}

// An exec that updates `memory` in place on the first of two devices.
Exec scatter_in_place(const Environment& env, const Tensor& memory) {
  Graph graph;
  const uint32_t cache = graph.input("cache", BP_DTYPE_FLOAT, {3});
  const uint32_t at = graph.input("at", BP_DTYPE_INT64, {1}), value = graph.input("value", BP_DTYPE_FLOAT, {1});
  const Model model = graph.finish({graph.node("ScatterElements", "y", {cache, at, value})});
  SessionOptions how;
  how.devices = {"partial:0", "partial:1"};
  Exec exec = env.compile(model, how).exec();
  exec.bind("cache", memory);
  exec.bind_output(0u, memory);
  exec.bind("at", Tensor::of<int64_t>({1}, {1}));
  exec.bind("value", Tensor::of<float>({1}, {9}));
  return exec;
}

TEST(Run, AFaultInAnUpdateInPlaceIsReportedAndLaterRunsAreElsewhere) {
  const Environment env = partial_environment({{"partial.devices", "2"},
                                               {"partial.0.seconds", "1e-6"},
                                               {"partial.1.seconds", "1"},
                                               {"partial.0.fault", "lost@y#2"}});
  const Tensor memory = Tensor::of<float>({3}, {1, 2, 3});
  Exec exec = scatter_in_place(env, memory);
  exec.run();
  EXPECT_THAT(memory.values<float>(), ElementsAre(1, 9, 3));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_THAT(error.text(), HasSubstr("write it again"));
  exec.run();
  EXPECT_EQ(counters(env, 1).runs, 1u);
}

TEST(Run, AnUpdateInPlaceIsElsewhereIfTheDeviceWasGivenUpBefore) {
  const Environment env =
      partial_environment({{"partial.devices", "2"}, {"partial.0.seconds", "1e-6"}, {"partial.1.seconds", "1"}});
  const Tensor memory = Tensor::of<float>({3}, {1, 2, 3});
  Exec exec = scatter_in_place(env, memory);
  exec.run();
  EXPECT_EQ(counters(env, 0).runs, 1u);
  env.abandon_device(env.devices()[1].info.id);
  exec.bind("value", Tensor::of<float>({1}, {8}));
  exec.run();
  EXPECT_THAT(memory.values<float>(), ElementsAre(1, 8, 3));
  EXPECT_EQ(counters(env, 1).runs, 1u);
}

TEST(Run, AFaultIsReportedIfNoOtherDeviceCanRunTheIsland) {
  auto options = with_a_spare("lost@b#1");
  options["partial.2.ops"] = "Neg";
  const Environment env = partial_environment(options);
  Exec exec = env.compile(chain_of_three(), on_partial_devices()).exec();
  const Error error = failure([&] { run(exec, {1}); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_THAT(error.text(), HasSubstr("island 1 (1 node from node 'b' (Abs))"));
}

TEST(Run, ManyThreadsOutliveADevice) {
  auto options = with_a_spare("lost@b#100");
  options["partial.1.memory"] = "own";
  const Environment env = partial_environment(options);
  const Session session = env.compile(chain_of_three(), on_partial_devices());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Exec exec = session.exec();
      for (int i = 0; i < 50; ++i) {
        const float v = static_cast<float>(t * 100 + i);
        if (run(exec, {v, -v}) != std::vector<float>{-v, -v}) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(counters(env, 2).compiles, 1u);
}

TEST(Run, ManyRunsOfOneSessionAreInFlight) {
  const Environment env = partial_environment(
      {{"partial.devices", "2"}, {"partial.memory", "own"}, {"partial.async", "1"}, {"partial.run_us", "500"}});
  const Session session = env.compile(diamond(), pinned({{"left", "partial:0"}, {"right", "partial:1"}, {"y", "cpu"}}));
  constexpr size_t kCount = 12;
  const Semaphore ended;
  std::vector<Exec> execs;
  std::vector<bp_point_t> points(kCount);
  std::vector<bp_run_t> runs(kCount);
  std::vector<Tensor> results;
  for (size_t i = 0; i < kCount; ++i) {
    Exec& exec = execs.emplace_back(session.exec());
    const float v = static_cast<float>(i);
    exec.bind("x", Tensor::of<float>({3}, {v, -v, v + 1}));
    exec.bind_output(0u, results.emplace_back(BP_DTYPE_FLOAT, std::vector<int64_t>{3}));
    points[i] = ended.at(i + 1);
    runs[i].size = sizeof runs[i];
    runs[i].signals = &points[i];
    runs[i].signal_count = 1;
    if (i) {
      runs[i].waits = &points[i - 1];  // runs end in order, so the last value means that all have ended
      runs[i].wait_count = 1;
    }
    exec.submit(runs[i]);
  }
  ended.wait(kCount);
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_THAT(results[i].values<float>(), ElementsAre(0, 2 * static_cast<float>(i), 0));
}

// Sixteen threads, each with its own exec, use three devices with three kinds of memory.
TEST(Run, SixteenThreadsOnThreeDevices) {
  constexpr int kRuns = 1000;
  const Environment env = partial_environment({{"partial.devices", "2"},
                                               {"partial.0.memory", "own"},
                                               {"partial.1.memory", "flushed"},
                                               {"partial.1.async", "1"}});
  {
    const Session session =
        env.compile(diamond(), pinned({{"left", "partial:0"}, {"right", "partial:1"}, {"y", "cpu"}}));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        Exec exec = session.exec();
        for (int i = 0; i < kRuns; ++i) {
          const float v = static_cast<float>(t * 1000 + i);
          if (run(exec, {v, -v, v + 1}) != std::vector<float>{0, 2 * v, 0}) ++wrong;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
  for (uint32_t device : {0u, 1u}) {
    const partial::Counters& c = counters(env, device);
    EXPECT_EQ(c.runs, 16u * kRuns);
    EXPECT_EQ(c.instances, 0u);
    EXPECT_EQ(c.programs, 0u);
    EXPECT_EQ(c.allocations + c.imports, c.releases);
  }
}

}  // namespace
}  // namespace backplane
