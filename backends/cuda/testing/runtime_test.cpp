// SPDX-License-Identifier: Apache-2.0
// Runs the backend under the loader on the stand-in for a GPU. Checks results, that no objects leak, and that failures
// of driver calls are reported.
#include <thread>

#include "testing/small_model.h"
#include "testing/standin_fixture.h"

namespace backplane::cuda::testing {
namespace {

class Runtime : public StandinTest {
 protected:
  static Exec bound(const Environment& env, const char* device, int64_t rows = 3) {
    Exec exec = env.compile(gpu::testing::small_model(), only(device)).exec();
    exec.bind("x", gpu::testing::small_input(rows, 0));
    return exec;
  }
  static std::vector<float> results(const Environment& env, const char* device, int64_t rows = 3) {
    Exec exec = bound(env, device, rows);
    exec.run();
    return exec.output(0u).values<float>();
  }
};

TEST_F(Runtime, ResultsAreThoseOfTheCpu) {
  const Environment env = Runtime::env();
  for (const int64_t rows : {1, 3, 70}) {
    const std::vector<float> expected = results(env, "cpu", rows), found = results(env, "cuda", rows);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5f);
  }
}

TEST_F(Runtime, NothingLeaks) {
  const std::map<std::string, int64_t> before = objects();
  { results(env(), "cuda"); }
  EXPECT_EQ(objects(), before);
}

TEST_F(Runtime, ManyRunsOnFourThreads) {
  const Environment env = Runtime::env();
  Exec warm = bound(env, "cuda");
  warm.run();
  const std::vector<float> expected = warm.output(0u).values<float>();
  const std::map<std::string, int64_t> before = objects();
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        Exec exec = bound(env, "cuda");
        for (int i = 0; i < 250; ++i) {
          exec.run();
          EXPECT_EQ(exec.output(0u).values<float>(), expected);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(objects(), before);
}

// Makes each function fail from its first call on, then from its second, and so on until no call fails. No run may
// crash, each error must have the right code, and no object may leak.
TEST_F(Runtime, EveryCallMayFail) {
  const Environment env = Runtime::env();
  bound(env, "cuda").run();
  const std::map<std::string, int64_t> before = objects();
  for (const char* function :
       {"cuMemAlloc_v2", "cuStreamCreate", "cuModuleGetFunction", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2", "cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize"}) {
    SCOPED_TRACE(function);
    const uint64_t calls_before = standin_calls(function);
    uint64_t good = 0;
    bool refused = true;
    while (refused) {
      ASSERT_LT(good, 100u);
      const uint64_t calls = standin_calls(function);
      standin_fail(function, CUDA_ERROR_OUT_OF_MEMORY, good);
      const Error error = failure([&] { bound(env, "cuda").run(); });
      standin_fail(nullptr, CUDA_SUCCESS, 0);
      refused = standin_calls(function) - calls > good;
      ++good;
      if (error.status() != BP_OK) {
        EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << error.text();
      }
      EXPECT_TRUE(refused || error.status() == BP_OK) << error.text();
      EXPECT_EQ(objects(), before);
    }
    EXPECT_GT(standin_calls(function), calls_before) << "it was never called";
  }
  bound(env, "cuda").run();
}

TEST_F(Runtime, ALostDeviceIsReportedAsLost) {
  const Environment env = Runtime::env();
  for (const char* where : {"cuLaunchKernel", "cuEventSynchronize"}) {
    SCOPED_TRACE(where);
    Exec exec = bound(env, "cuda");
    exec.run();
    standin_fail(where, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
    standin_fail(nullptr, CUDA_SUCCESS, 0);
  }
}

// A launch has at most 65,535 groups in its third dimension. 65,537 is a prime number.
TEST_F(Runtime, PlanesBeyondTheGridShareGroups) {
  const Environment env = Runtime::env();
  const auto pooled = [&](int64_t planes) {
    Graph graph;
    NodeOptions how;
    how.attributes["kernel_shape"] = std::vector<int64_t>{1, 2};
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, planes, 1, 2});
    Exec exec = env.compile(graph.finish({graph.Builder::node("MaxPool", {x}, how)}), only("cuda")).exec();
    std::vector<float> all(static_cast<size_t>(planes) * 2);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
    exec.bind(0u, Tensor::of<float>({1, planes, 1, 2}, all));
    exec.run();
    return exec.output(0u).values<float>();
  };
  const std::vector<float> found = pooled(65536);
  ASSERT_EQ(found.size(), 65536u);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<float>(2 * i + 1));
  const Error refused = failure([&] { pooled(65537); });
  EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
  EXPECT_NE(refused.text().find("65537 work groups in dimension 2"), std::string::npos) << refused.text();
}

TEST_F(Runtime, ABoundRunDoesNotWaitForAStream) {
  const Environment env = Runtime::env();
  Exec exec = bound(env, "cuda");
  exec.run();
  const uint64_t before = standin_calls("cuStreamSynchronize"), allocated = standin_calls("cuMemAlloc_v2");
  exec.run();
  EXPECT_EQ(standin_calls("cuStreamSynchronize"), before);
  EXPECT_EQ(standin_calls("cuMemAlloc_v2"), allocated);
}

// The host signals a value beyond those that unfinished runs will signal, and one more run signals a later value: the
// semaphore has passed the values of the unfinished runs, but threads still wait for their events.
TEST_F(Runtime, AnEventStaysWhileAThreadWaitsForIt) {
  constexpr uint64_t kSignals = 16;
  const int64_t events = standin_objects("events");
  {
    const Environment env = Runtime::env();
    uint64_t device = 0;
    for (const Device& each : env.devices())
      if (each.name == "cuda") device = each.info.id;
    const Buffer x = env.allocate(device, 3 * 8 * sizeof(float)), y = env.allocate(device, 3 * 8 * sizeof(float));
    x.fill(0.0f);
    const NativeSemaphore points(env.get(), device);
    const Semaphore go;
    const Stream stream = env.stream(device);
    Exec exec = env.compile(gpu::testing::small_model(), only("cuda")).exec();
    exec.bind_memory(0, x.tensor(BP_DTYPE_FLOAT, {3, 8}));
    exec.bind_memory(BP_SLOT_OUTPUT, y.tensor(BP_DTYPE_FLOAT, {3, 8}));
    exec.run();
    const char* const destruction = "destruction of an event that is waited for";
    const uint64_t waits = standin_calls("cuEventSynchronize"), before = standin_calls(destruction);
    RunOptions how;
    how.stream = &stream;
    how.waits = {go.at(1)};
    for (uint64_t value = 1; value <= kSignals; ++value) {
      how.signals = {points.at(value)};
      exec.run(how);
      how.waits.clear();
    }
    while (standin_calls("cuEventSynchronize") < waits + kSignals) std::this_thread::yield();
    points.signal(100);
    how.signals = {points.at(101)};
    exec.run(how);
    EXPECT_EQ(standin_calls(destruction), before);
    go.signal(1);
    stream.wait();
    points.wait(101);
  }
  while (standin_objects("events") != events) std::this_thread::yield();  // until the threads have ended
}

}  // namespace
}  // namespace backplane::cuda::testing
