// SPDX-License-Identifier: Apache-2.0
// Events of runs in every order: signalled before and after the run, waited for by several threads, and released in any
// order. Uses the null device, so that the thread sanitizer sees all code.
#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <tuple>
#include <vector>

#include "backplane/types.h"
#include "onnxifi/event.h"
#include "onnxifi/onnxifi.h"
#include "onnxifi/testing/structs.h"
#include "testing/emulated.h"
#include "testing/onnx_writer.h"

namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using backplane::onnxifi::descriptor;
using backplane::onnxifi::fence;

// Must be set before the library first looks for backends.
const int kOnlyThis = setenv("BACKPLANE_SELECT", "org.backplane.null,null", 1);

onnxBackendID null_device() {
  size_t count = 1;
  onnxBackendID id = nullptr;
  EXPECT_EQ(onnxGetBackendIDs(&id, &count), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count, 1u);
  return id;
}

// When the input event is signalled: before the run is started, after that, or at any time by another thread.
enum class Signal { kBefore, kAfter, kAnyTime };

// c = -a
std::string neg_model() {
  return model_bytes({{"", 13}}, graph({node("Neg", {"a"}, {"c"})}, {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)})},
                                       {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}));
}

TEST(Event, OfARunThatCannotBeStartedIsSignalledWithItsStatus) {
  backplane::onnxifi::Event event;
  EXPECT_FALSE(event.is_signalled());
  event.fail(ONNXIFI_STATUS_NO_SYSTEM_RESOURCES);
  ASSERT_TRUE(event.is_signalled());
  EXPECT_EQ(event.wait(), ONNXIFI_STATUS_NO_SYSTEM_RESOURCES);
}

class Events : public ::testing::TestWithParam<Signal> {};

TEST_P(Events, WorkInEveryOrder) {
  const std::string model = model_bytes(
      {{"", 13}}, graph({node("Add", {"a", "b"}, {"c"})},
                        {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)}), tensor_value("b", BP_DTYPE_FLOAT, {Dim(3)})},
                        {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}));
  const onnxBackendID id = null_device();
  // The order in which objects are released: input event, output event, graph, backend.
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    onnxBackend backend = nullptr;
    onnxGraph graph = nullptr;
    onnxEvent ready = nullptr;
    ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
    float a[3] = {1, 2, 3}, b[3] = {}, c[3] = {};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a), descriptor("b", b)}, out[] = {descriptor("c", c)};
    ASSERT_EQ(onnxSetGraphIO(graph, 2, in, 1, out), ONNXIFI_STATUS_SUCCESS);

    const auto signal = [&] {
      for (float& value : b) value = 10;  // writes the input, then signals that it is ready
      EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
    };
    std::vector<std::thread> threads;
    if (GetParam() == Signal::kBefore) signal();
    if (GetParam() == Signal::kAnyTime) threads.emplace_back(signal);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
    for (int waiter = 0; waiter < 3; ++waiter) {
      threads.emplace_back([&, waiter] {
        EXPECT_EQ(onnxWaitEvent(waiter == 0 ? ready : after.event), ONNXIFI_STATUS_SUCCESS);
        onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
        EXPECT_EQ(onnxGetEventState(ready, &state), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
        if (waiter != 0) {
          EXPECT_EQ(c[2], 13);
        }
      });
    }
    if (GetParam() == Signal::kAfter) signal();
    for (std::thread& thread : threads) thread.join();

    for (const int object : order) {
      switch (object) {
        case 0:
          EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
          break;
        case 1:
          EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
          break;
        case 2:
          EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
          break;
        default:
          EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// The program releases the output event and the backend while the run is in flight. Releasing the graph waits for the
// run, so the program may reuse the run's memory after that.
TEST_P(Events, MayBeReleasedWhileTheRunIsInFlight) {
  const std::string model = neg_model();
  const onnxBackendID id = null_device();
  for (int i = 0; i < 50; ++i) {
    onnxBackend backend = nullptr;
    onnxGraph graph = nullptr;
    onnxEvent ready = nullptr;
    ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
    float a[3] = {1, 2, 3}, c[3] = {};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a)}, out[] = {descriptor("c", c)};
    ASSERT_EQ(onnxSetGraphIO(graph, 1, in, 1, out), ONNXIFI_STATUS_SUCCESS);
    const auto signal = [ready] { EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS); };
    if (GetParam() == Signal::kBefore) signal();
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
    std::thread other;
    if (GetParam() == Signal::kAfter) signal();
    if (GetParam() == Signal::kAnyTime) other = std::thread(signal);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c[2], -3);
    if (other.joinable()) other.join();
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// The library is loaded, but first used in a child of the process that loaded it, as by a program that becomes a
// daemon.
TEST(FirstUse, MayBeInAForkedChild) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  if (getenv("BACKPLANE_TEST_FORK") == nullptr) {  // in a process that has not used the library
    EXPECT_EQ(                                     // NOLINTNEXTLINE(bugprone-command-processor)
        system("BACKPLANE_TEST_FORK=1 \"$(readlink /proc/$PPID/exe)\" --gtest_filter=FirstUse.MayBeInAForkedChild"), 0);
    return;
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child != 0) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return;
  }
  alarm(20);  // ends a child that hangs
  const std::string model = neg_model();
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent ready = nullptr;
  float a[3] = {1, 2, 3}, c[3] = {};
  const onnxTensorDescriptorV1 in[] = {descriptor("a", a)}, out[] = {descriptor("c", c)};
  bool is_right =
      onnxInitBackend(null_device(), nullptr, &backend) == ONNXIFI_STATUS_SUCCESS &&
      onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph) == ONNXIFI_STATUS_SUCCESS &&
      onnxInitEvent(backend, &ready) == ONNXIFI_STATUS_SUCCESS &&
      onnxSetGraphIO(graph, 1, in, 1, out) == ONNXIFI_STATUS_SUCCESS;
  const onnxMemoryFenceV1 before = fence(ready);
  onnxMemoryFenceV1 after = fence();
  is_right = is_right && onnxRunGraph(graph, &before, &after) == ONNXIFI_STATUS_SUCCESS;
  std::thread signal([ready] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  });
  is_right = is_right && onnxWaitEvent(after.event) == ONNXIFI_STATUS_SUCCESS && c[2] == -3 &&
             onnxReleaseGraph(graph) == ONNXIFI_STATUS_SUCCESS;
  signal.join();
  _exit(is_right ? 0 : 1);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support forking a multithreaded process
// While one thread makes the first call, which takes long, another one forks. A child may find the library unusable,
// but its calls return.
TEST(FirstUse, MayCoincideWithForks) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  if (getenv("BACKPLANE_TEST_FORK") == nullptr) {  // in a process that has not used the library
    EXPECT_EQ(                                     // NOLINTNEXTLINE(bugprone-command-processor)
        system("BACKPLANE_TEST_FORK=1 \"$(readlink /proc/$PPID/exe)\" --gtest_filter=FirstUse.MayCoincideWithForks"),
        0);
    return;
  }
  std::atomic<bool> starts{false}, ends{false};
  std::thread first([&] {
    starts = true;
    null_device();
    ends = true;
  });
  while (!starts) std::this_thread::yield();
  std::vector<pid_t> children;
  while (!ends && children.size() < 100) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      size_t count = 0;
      const onnxStatus status = onnxGetBackendIDs(nullptr, &count);
      _exit(status == ONNXIFI_STATUS_FALLBACK || status == ONNXIFI_STATUS_BACKEND_UNAVAILABLE ? 0 : 1);
    }
    children.push_back(child);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  first.join();
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}
#endif

// Releasing a graph waits for its runs even if calls on other threads keep the graph alive.
TEST(Release, WaitsForRunsWhileOthersCall) {
  const std::string model = neg_model();
  const onnxBackendID id = null_device();
  onnxBackend backend = nullptr;
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  for (int i = 0; i < 50; ++i) {
    onnxGraph graph = nullptr;
    onnxEvent ready = nullptr;
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
    float a[3] = {1, 2, 3}, c[3] = {};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a)}, out[] = {descriptor("c", c)};
    ASSERT_EQ(onnxSetGraphIO(graph, 1, in, 1, out), ONNXIFI_STATUS_SUCCESS);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
    std::vector<std::thread> callers(2);
    for (std::thread& caller : callers)
      caller = std::thread([&] {
        while (onnxSetGraphIO(graph, 1, in, 1, out) == ONNXIFI_STATUS_SUCCESS) {
        }
      });
    std::atomic<bool> is_signalled{false};
    std::thread signal([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      is_signalled = true;
      EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
    });
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_TRUE(is_signalled);
    EXPECT_EQ(c[2], -3);
    for (std::thread& caller : callers) caller.join();
    signal.join();
    for (onnxEvent each : {ready, after.event}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// A thread that is cancelled during onnxWaitEvent ends only after the wait has ended.
TEST(Wait, DefersCancellation) {
  const onnxBackendID id = null_device();
  onnxBackend backend = nullptr;
  onnxEvent event = nullptr;
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitEvent(backend, &event), ONNXIFI_STATUS_SUCCESS);
  pthread_t waiter;
  ASSERT_EQ(pthread_create(
                &waiter, nullptr,
                [](void* what) -> void* {
                  EXPECT_EQ(onnxWaitEvent(what), ONNXIFI_STATUS_SUCCESS);
                  pthread_testcancel();
                  return nullptr;
                },
                event),
            0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pthread_cancel(waiter), 0);
  EXPECT_EQ(onnxSignalEvent(event), ONNXIFI_STATUS_SUCCESS);
  void* result = nullptr;
  EXPECT_EQ(pthread_join(waiter, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(onnxReleaseEvent(event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// A program that signals the output events itself does not end the runs: releasing the graph still waits for them, and
// for runs that wait for earlier ones.
TEST(OutputEvents, SignalledByTheProgramDoNotEndTheRuns) {
  constexpr int kRuns = 4;
  const std::string model = neg_model();
  const onnxBackendID id = null_device();
  onnxBackend backend = nullptr;
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  for (int i = 0; i < 200; ++i) {
    onnxGraph graph = nullptr;
    onnxEvent ready = nullptr;
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
    float a[3] = {1, 2, 3}, c[3] = {};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a)}, out[] = {descriptor("c", c)};
    ASSERT_EQ(onnxSetGraphIO(graph, 1, in, 1, out), ONNXIFI_STATUS_SUCCESS);
    const onnxMemoryFenceV1 before = fence(ready);
    for (int run = 0; run < kRuns; ++run) {
      onnxMemoryFenceV1 after = fence();
      ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(onnxSignalEvent(after.event), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    }
    std::thread other([&] {
      for (float& value : a) value += 1;
      EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
    });
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c[2], -4);
    other.join();
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// No run is waited for, and the program releases each output event while the run may be about to signal it.
TEST(OutputEvents, MayBeReleasedAtOnce) {
  const std::string model = neg_model();
  const onnxBackendID id = null_device();
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent ready = nullptr;
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  float a[3] = {1, 2, 3}, c[3] = {};
  const onnxTensorDescriptorV1 in = descriptor("a", a), out = descriptor("c", c);
  ASSERT_EQ(onnxSetGraphIO(graph, 1, &in, 1, &out), ONNXIFI_STATUS_SUCCESS);
  const onnxMemoryFenceV1 before = fence(ready);
  for (int i = 0; i < 2000; ++i) {
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    for (volatile int pause = 0; pause < i % 200 * 20;)
      pause = pause + 1;  // so that some runs end before the next call
  }
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(c[2], -3);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

// The first run cannot start, because its input event is not signalled; a second may be enqueued after it. The last run
// must wait for the first if either of the two writes memory that the other uses.
TEST(Locations, ThatOverlapOrderRuns) {
  float memory[18] = {};
  struct Case {
    const char* what;
    std::vector<std::array<float*, 2>> runs;  // input and output of each, three floats long
    bool waits;
  };
  const Case cases[] = {
      {"the same, set again", {{memory, memory + 3}, {memory, memory + 3}}, true},
      {"the same output", {{memory, memory + 3}, {memory + 6, memory + 3}}, true},
      {"an output that shares one element", {{memory, memory + 3}, {memory + 9, memory + 5}}, true},
      {"an input that is written before", {{memory, memory + 3}, {memory + 3, memory + 6}}, true},
      {"an output that is read before", {{memory, memory + 3}, {memory + 6, memory}}, true},
      {"the same as two runs before", {{memory, memory + 3}, {memory + 6, memory + 9}, {memory, memory + 3}}, true},
      {"the same input", {{memory, memory + 3}, {memory, memory + 6}}, false},
      {"others, next to it", {{memory, memory + 3}, {memory + 9, memory + 6}}, false},
      {"others, twice", {{memory, memory + 3}, {memory + 6, memory + 9}, {memory + 12, memory + 15}}, false},
  };
  const std::string model = neg_model();
  const onnxBackendID id = null_device();
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent ready = nullptr;
  ASSERT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitEvent(backend, &ready), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  const auto is_signalled = [](onnxEvent event) {
    onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
    EXPECT_EQ(onnxGetEventState(event, &state), ONNXIFI_STATUS_SUCCESS);
    return state == ONNXIFI_EVENT_STATE_SIGNALLED;
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    onnxEvent first = nullptr;
    ASSERT_EQ(onnxInitEvent(backend, &first), ONNXIFI_STATUS_SUCCESS);
    std::vector<onnxEvent> ended;
    for (const auto& [input, output] : one.runs) {
      const onnxTensorDescriptorV1 in = descriptor("a", input), out = descriptor("c", output);
      ASSERT_EQ(onnxSetGraphIO(graph, 1, &in, 1, &out), ONNXIFI_STATUS_SUCCESS);
      const onnxMemoryFenceV1 before = fence(ended.empty() ? first : ready);
      onnxMemoryFenceV1 after = fence();
      ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
      ended.push_back(after.event);
    }
    // A run that does not wait ends within a few microseconds.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(one.waits ? 50 : 60000);
    while (!is_signalled(ended.back()) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(is_signalled(ended.back()), !one.waits);
    EXPECT_FALSE(is_signalled(ended.front()));
    EXPECT_EQ(onnxSignalEvent(first), ONNXIFI_STATUS_SUCCESS);
    for (const onnxEvent event : ended) {
      EXPECT_EQ(onnxWaitEvent(event), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(onnxReleaseEvent(event), ONNXIFI_STATUS_SUCCESS);
    }
    EXPECT_EQ(onnxReleaseEvent(first), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, Events, ::testing::Values(Signal::kBefore, Signal::kAfter, Signal::kAnyTime),
                         [](const auto& info) {
                           return info.param == Signal::kBefore  ? "before"
                                  : info.param == Signal::kAfter ? "after"
                                                                 : "anytime";
                         });

}  // namespace
