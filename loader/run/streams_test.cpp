// SPDX-License-Identifier: Apache-2.0
// Asynchronous devices in a run: work in streams, waits on the host, and reports of failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <regex>
#include <thread>
#include <utility>
#include <vector>

#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> run(Exec& exec) {
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Streams, AChainOfIslandsRunsWithoutTheHost) {
  constexpr int kIslands = 20;
  const Environment env = streaming({});
  Exec exec = env.compile(chain(kIslands), pinned({{"*", "partial"}})).exec();
  for (uint64_t runs = 1; runs <= 3; ++runs) {
    EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
    const partial::Counters& counted = counters(env);
    EXPECT_EQ(counted.runs, kIslands * runs);
    EXPECT_EQ(counted.stream_runs, kIslands * runs);
    EXPECT_EQ(counted.stream_copies, 2 * runs);
    EXPECT_EQ(counted.copies, 2 * runs);  // every copy was in the stream
    EXPECT_EQ(counted.reports, runs);     // only the copy back to the host, at the end
    EXPECT_EQ(counted.stream_waits, 0u);
  }
}

// If a run may have to end early, every task reports its end, and only a few tasks are in the stream at a time.
TEST(Streams, ARunWithADeadlineUsesTheStream) {
  constexpr int kIslands = 20;
  const Environment env = streaming({});
  Exec exec = env.compile(chain(kIslands), pinned({{"*", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  RunOptions options;
  options.timeout = std::chrono::seconds(30);
  exec.run(options);
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
  const partial::Counters& counted = counters(env);
  EXPECT_EQ(counted.stream_runs, kIslands);
  EXPECT_EQ(counted.stream_copies, 2u);
  EXPECT_EQ(counted.reports, kIslands + 2u);
  EXPECT_EQ(counted.stream_waits, 0u);
}

TEST(Streams, ARunThatHasToEndLeavesFewIslandsBehind) {
  // An island takes 10 ms. So 10 islands end in 100 ms, 4 more may be in the stream, and 1 may end late.
  constexpr uint64_t kIslands = 200, kMost = 10 + 4 + 1;
  constexpr auto kTime = std::chrono::milliseconds(100);
  for (const bool by_deadline : {true, false}) {
    const Environment env = streaming({{"partial.run_us", "10000"}});
    Exec exec = env.compile(chain(kIslands), pinned({{"*", "partial"}})).exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    const Cancel cancelled, cancel;
    cancelled.set();
    RunOptions options;
    options.cancel = &cancelled;
    EXPECT_EQ(failure([&] { exec.run(options); }).status(), BP_CANCELLED);  // makes the plan, which takes time too
    options.cancel = nullptr;
    std::thread canceller([&] {
      std::this_thread::sleep_for(kTime);
      if (!by_deadline) cancel.set();
    });
    if (by_deadline)
      options.timeout = kTime;
    else
      options.cancel = &cancel;
    EXPECT_EQ(failure([&] { exec.run(options); }).status(), by_deadline ? BP_TIMED_OUT : BP_CANCELLED);
    canceller.join();
    const uint64_t most = by_deadline ? kMost : kIslands / 2;  // a busy machine may wake the canceller late
    EXPECT_LE(counters(env).runs, most);
    EXPECT_GT(counters(env).stream_runs, 0u);
  }
}

// Islands alternate between two devices. With marks, each island waits on its device for the mark of the island before
// it. Without marks, the host waits.
TEST(Streams, DevicesWaitForEachOtherByTheirOwnPoints) {
  for (const bool marks : {false, true}) {
    const Environment env =
        streaming({{"partial.devices", "2"}, {"partial.peers", "1"}, {"partial.marks", marks ? "1" : "0"}});
    Exec exec =
        env.compile(chain(4),
                    pinned({{"n0", "partial:0"}, {"n1", "partial:1"}, {"n2", "partial:0"}, {"n3", "partial:1"}}))
            .exec();
    for (uint64_t runs = 1; runs <= 3; ++runs) {
      EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
      const partial::Counters &first = counters(env, 0), &second = counters(env, 1);
      EXPECT_EQ(first.reports + second.reports, (marks ? 2u : 4u) * runs);
      EXPECT_EQ(first.marks + second.marks, (marks ? 3u : 0u) * runs);
      EXPECT_EQ(first.stream_waits + second.stream_waits, 0u);
    }
  }
}

// One device exports its semaphores as descriptors, which the other does not import. The descriptors must be closed,
// and the host orders the devices.
TEST(Streams, DescriptorsThatNoDeviceImportsAreClosed) {
  const Environment env = streaming(
      {{"partial.devices", "2"}, {"partial.peers", "1"}, {"partial.marks", "1"}, {"partial.mark_files", "1"}});
  const Session session = env.compile(
      chain(4), pinned({{"n0", "partial:0"}, {"n1", "partial:1"}, {"n2", "partial:0"}, {"n3", "partial:1"}}));
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto run_once = [&] {
    Exec exec = session.exec();
    EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
  };
  run_once();
  const auto before = descriptors();
  for (int i = 0; i < 10; ++i) run_once();
  EXPECT_EQ(descriptors(), before);
}

// Returns begin and end, in microseconds, of the device's spans with this name in a timeline.
std::vector<std::pair<double, double>> intervals(const std::string& timeline, const std::string& device,
                                                 const std::string& name) {
  std::smatch process;
  if (!std::regex_search(timeline, process,
                         std::regex(R"("process_name","pid":(\d+),"tid":0,"args":\{"name":")" + device + "\"")))
    return {};
  const std::regex span("\"name\":\"" + name + R"(","cat":"\w+","pid":)" + process[1].str() +
                        R"(,"tid":\d+,"ts":([0-9.]+),"dur":([0-9.]+))");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator match(timeline.begin(), timeline.end(), span), end; match != end; ++match) {
    const double begin = std::stod((*match)[1]);
    found.emplace_back(begin, begin + std::stod((*match)[2]));
  }
  return found;
}

TEST(Streams, TheHostWaitsForAndSignalsADevicesSemaphores) {
  const Environment env = streaming({{"partial.marks", "1"}});
  const uint64_t device = env.devices()[1].info.id;
  bp_semaphore_create_t how{sizeof how, 0, 3, nullptr, nullptr};
  bp_native_semaphore_t *semaphore = nullptr, *same = nullptr;
  detail::call(api().native_semaphore_create, env.get(), device, static_cast<const bp_semaphore_create_t*>(&how),
               &semaphore);
  uint64_t value = 0;
  detail::call(api().native_semaphore_query, semaphore, &value);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(api().native_semaphore_wait(semaphore, 3, BP_FOREVER, nullptr), BP_OK);
  EXPECT_EQ(api().native_semaphore_wait(semaphore, 4, 1, nullptr), BP_TIMED_OUT);
  // Imports the exported semaphore: a second handle of the same semaphore.
  const bp_semaphore_export_t every_value{sizeof every_value, 0, 0, nullptr};
  bp_native_t native{};
  native.size = sizeof native;
  detail::call(api().native_semaphore_export, semaphore, &every_value, &native);
  how.native = &native;
  detail::call(api().native_semaphore_create, env.get(), device, static_cast<const bp_semaphore_create_t*>(&how),
               &same);
  std::thread signals([&] { EXPECT_EQ(api().native_semaphore_signal(same, 5, nullptr), BP_OK); });
  EXPECT_EQ(api().native_semaphore_wait(semaphore, 5, BP_FOREVER, nullptr), BP_OK);
  signals.join();
  detail::call(api().native_semaphore_query, semaphore, &value);
  EXPECT_EQ(value, 5u);
  api().native_semaphore_destroy(same);
  api().native_semaphore_destroy(semaphore);
}

// The second device copies its input while the first computes, both in their streams, and the first then waits for the
// mark of the second. The run of "left" lasts until the copy has ended, and the copy until a device runs during it. The
// counters show that the copy was in a stream; a copy outside of one could overlap too.
TEST(Streams, CopiesOverlapWithComputing) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3}), z = graph.input("z", BP_DTYPE_FLOAT, {3});
  const uint32_t left = graph.node("Neg", "left", {graph.node("Neg", "before", {x})});
  const Model model = graph.finish({graph.node("Add", "y", {left, graph.node("Abs", "right", {z})})});
  const Environment env = streaming({{"partial.devices", "2"},
                                     {"partial.0.fault", "held@left#1"},
                                     {"partial.1.copy_meets", "1"},
                                     {"partial.peers", "1"},
                                     {"partial.marks", "1"}});
  Exec exec =
      env.compile(model,
                  pinned({{"before", "partial:0"}, {"left", "partial:0"}, {"right", "partial:1"}, {"y", "partial:0"}}))
          .exec();
  exec.bind("z", Tensor::of<float>({3}, {-1, 1, -1}));
  const partial::Counters &first = counters(env, 0), &second = counters(env, 1);
  env.start_trace();
  std::jthread lets_go([&] {
    const auto begin = std::chrono::steady_clock::now();
    while (second.copies == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first.let_go = true;
  });
  EXPECT_THAT(run(exec), ElementsAre(2, -1, 4));
  lets_go.join();
  const std::string timeline = env.stop_trace();
  EXPECT_EQ(first.stream_runs, 3u);
  EXPECT_EQ(second.stream_runs, 1u);
  EXPECT_EQ(second.stream_copies, 1u);
  EXPECT_EQ(second.copies, 1u);
  EXPECT_GE(first.marks, 1u);
  EXPECT_EQ(second.copies_during_runs, 1u);
  const auto copies = intervals(timeline, "partial:1", "bytes moved");
  const auto runs = intervals(timeline, "partial", "run of an island");
  ASSERT_EQ(copies.size(), 1u) << timeline;
  ASSERT_EQ(runs.size(), 3u) << timeline;
  const auto overlaps = [&](const auto& run) { return run.first < copies[0].second && copies[0].first < run.second; };
  EXPECT_TRUE(std::any_of(runs.begin(), runs.end(), overlaps)) << timeline;
}

TEST(Streams, AFailureInTheMiddleOfAChainIsReportedAtItsEnd) {
  const Environment env = streaming({{"partial.fault", "internal@n3#2"}});
  SessionOptions how = pinned({{"*", "partial"}});
  how.devices = {"partial"};
  how.fallback = BP_FALLBACK_FORBID;
  Exec exec = env.compile(chain(8), how).exec();
  EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
  const Error failed = failure([&] { run(exec); });
  EXPECT_EQ(failed.status(), BP_INTERNAL);
  EXPECT_THAT(failed.text(), HasSubstr("n3"));
  EXPECT_THAT(failed.text(), HasSubstr("a scripted defect"));
  EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
}

// Tasks that waited for the failed task may report their failure first. The run must still report the cause.
TEST(Streams, TheCauseIsReportedNotWhatFollowsFromIt) {
  const Environment env = streaming({{"partial.devices", "2"},
                                     {"partial.peers", "1"},
                                     {"partial.marks", "1"},
                                     {"partial.0.run_us", "5000"},
                                     {"partial.0.fault", "internal@n0#1"}});
  Exec exec = env.compile(chain(4),
                          pinned({{"n0", "partial:0"}, {"n1", "partial:1"}, {"n2", "partial:0"}, {"n3", "partial:1"}}))
                  .exec();
  const Error failed = failure([&] { run(exec); });
  EXPECT_EQ(failed.status(), BP_INTERNAL) << failed.text();
  EXPECT_THAT(failed.text(), HasSubstr("n0"));
  EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
}

// The nodes of the failed island are placed on another device, and the run is repeated.
TEST(Streams, AFailedIslandOfAChainIsRunElsewhere) {
  const Environment env = streaming({{"partial.fault", "internal@n3#1"}});
  Exec exec = env.compile(chain(8)).exec();
  EXPECT_THAT(run(exec), ElementsAre(1, -2, 3));
}

// The device writes to the run's memory after it was abandoned and all was destroyed, so that memory must still exist.
// Other devices remain usable.
TEST(Streams, ADeviceThatDoesNotReturnIsAbandoned) {
  for (const std::string memory : {"own", "host"}) {
    const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
    const partial::Counters* abandoned = nullptr;
    {
      const Environment env = streaming({{"partial.memory", memory}, {"partial.fault", "held@n1#2"}});
      abandoned = &counters(env);
      SessionOptions how;
      how.devices = {"partial", "cpu"};
      how.fallback = BP_FALLBACK_PREFER;
      const Session session = env.compile(chain(3), how);
      Exec second = session.exec();
      EXPECT_THAT(run(second), ElementsAre(-1, 2, -3));
      Exec exec = session.exec();
      exec.bind("x", x);
      exec.bind_output(0u, y);
      const auto begin = std::chrono::steady_clock::now();
      RunOptions options;
      options.timeout = std::chrono::milliseconds(500);  // long enough for the device to begin
      const Error late = failure([&] { exec.run(options); });
      EXPECT_EQ(late.status(), BP_TIMED_OUT);
      EXPECT_TRUE(late.abandoned());
      EXPECT_THAT(late.text(), HasSubstr("device 'partial' did not return"));
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
      EXPECT_EQ(counters(env).abandoned, 1u);
      EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
      // Later runs use the CPU, both in an exec created earlier and in a new one.
      EXPECT_THAT(run(second), ElementsAre(-1, 2, -3));
      Exec other = session.exec();
      EXPECT_THAT(run(other), ElementsAre(-1, 2, -3));
    }
    abandoned->let_go = true;
    wait_until_idle(*abandoned);
  }
}

// A stream signals its native points after `done`, so they must outlive a run that the loader has reported.
TEST(Streams, MarksLastUntilTheirStreamHasEnded) {
  const Environment env = streaming({{"partial.devices", "2"},
                                     {"partial.peers", "1"},
                                     {"partial.marks", "1"},
                                     {"partial.max_nodes", "1"},
                                     {"partial.run_us", "150"}});
  const Session session = env.compile(
      chain(4), pinned({{"n0", "partial:0"}, {"n1", "partial:1"}, {"n2", "partial:0"}, {"n3", "partial:1"}}));
  for (int i = 0; i < 300; ++i) {
    Cancel cancel;
    Exec exec = session.exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    RunOptions how;
    how.cancel = &cancel;
    const std::jthread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 900));
      cancel.set();
    });
    try {
      exec.run(how);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), BP_CANCELLED) << error.text();
    }
  }
}

}  // namespace
}  // namespace backplane
