// SPDX-License-Identifier: Apache-2.0
// Repeated runs, on many threads, with changing extents and changing inputs that determine the plan.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <thread>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::ElementsAre;
using InstanceTest = OpenCl;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsReported = false;  // the sanitizer keeps freed memory
#else
constexpr bool kMemoryIsReported = true;
#endif

constexpr int kRuns = 10'000;

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The results of the small model on the CPU backend.
std::vector<float> expected(const Environment& env, int64_t rows, int seed) {
  SessionOptions how;
  how.devices = {"cpu"};
  Exec exec = env.compile(small_model(), how).exec();
  exec.bind("x", small_input(rows, seed));
  exec.run();
  return exec.output(0u).values<float>();
}

// Runs `exec` on new memory each time, with the extents of each result in `right` in turn. The results must be bitwise
// equal to `right`.
void run_often(Exec exec, int count, const std::vector<std::vector<float>>& right) {
  for (int i = 0; i < count; ++i) {
    const size_t which = static_cast<size_t>(i) % right.size();
    exec.bind("x", small_input(1 + static_cast<int64_t>(which) * 3, static_cast<int>(which)));
    exec.run();
    ASSERT_EQ(exec.output(0u).values<float>(), right[which]) << "run " << i;
  }
}

TEST_F(InstanceTest, ManyRunsOnManyThreadsLeakNothing) {
  constexpr int kThreadCount = 4;
  const ClLayer::References nothing = cl_layer().references();
  {
    const Environment env = opencl();
    const Session one = env.compile(small_model(), only_opencl());
    const Session other = env.compile(small_model(), only_opencl());
    std::vector<std::vector<float>> right;
    for (int which = 0; which < 3; ++which) {
      Exec exec = one.exec();
      exec.bind("x", small_input(1 + which * 3, which));
      exec.run();
      right.push_back(exec.output(0u).values<float>());
      EXPECT_THAT(right.back(), ::testing::Pointwise(::testing::FloatNear(1e-6f), expected(env, 1 + which * 3, which)));
    }
    // Two threads share each program; the second round starts with the state that the first one left.
    const auto round = [&](int count) {
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreadCount; ++t)
        threads.emplace_back([&, t] { run_often((t % 2 == 0 ? one : other).exec(), count / kThreadCount, right); });
      for (std::thread& thread : threads) thread.join();
    };
    round(kRuns / 4);
    const ClLayer::References before = cl_layer().references();
    const uint64_t launches = cl_layer().launches;
    const int64_t memory = resident_bytes();
    round(kRuns);
    EXPECT_GE(cl_layer().launches - launches, static_cast<uint64_t>(kRuns));
    EXPECT_EQ(cl_layer().references(), before);
    const int64_t grown = resident_bytes() - memory;
    RecordProperty("grown_bytes", std::to_string(grown));
    std::printf("%d runs on %d threads: resident memory grew by %lld KiB\n", kRuns, kThreadCount,
                static_cast<long long>(grown / 1024));
    EXPECT_LT(kMemoryIsReported ? grown : 0, 4 << 20);
  }
  EXPECT_EQ(cl_layer().references(), nothing);
}

TEST_F(InstanceTest, ManySessionsLeakNothing) {
  const Environment env = opencl();
  const Model model = small_model();
  const std::vector<float> right = expected(env, 2, 1);
  const auto once = [&] {
    Exec exec = env.compile(model, only_opencl()).exec();
    exec.bind("x", small_input(2, 1));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ::testing::Pointwise(::testing::FloatNear(1e-6f), right));
  };
  once();
  const ClLayer::References before = cl_layer().references();
  for (int i = 0; i < kRuns / 40; ++i) once();
  EXPECT_EQ(cl_layer().references(), before);
}

TEST_F(InstanceTest, CopiesNothingWhereTheDeviceSharesMemory) {
  const Environment env = opencl();
  for (const Device& device : env.devices()) {
    if (device.name == "opencl" && (device.info.flags & BP_DEVICE_UNIFIED_MEMORY) == 0)
      GTEST_SKIP() << device.name << " has memory of its own";
  }
  Exec exec = env.compile(small_model(), only_opencl()).exec();
  exec.bind("x", small_input(4, 1));
  exec.run();
  const uint64_t copies = cl_layer().copies;
  exec.run();
  EXPECT_EQ(cl_layer().copies, copies);
}

// The model has many branches and a node that joins them. Runs with a deadline enqueue the kernels in several batches.
TEST_F(InstanceTest, ABatchedRunHasTheSameBits) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 8}, {"rows", ""});
  std::vector<uint32_t> branches;
  for (int i = 0; i < 24; ++i) {
    const std::string name = std::to_string(i);
    std::vector<float> w(64);
    for (size_t k = 0; k < w.size(); ++k) w[k] = static_cast<float>((k + 1) * static_cast<size_t>(i + 3) % 13) - 6;
    const uint32_t product =
        graph.node("MatMul", "p" + name, {x, graph.weight("w" + name, Tensor::of<float>({8, 8}, w))});
    branches.push_back(graph.node("Softmax", "s" + name, {product}, {{"axis", -1}}));
  }
  const Model model = graph.finish({graph.node("Concat", "y", branches, {{"axis", 1}})});
  std::vector<std::vector<float>> results;
  Exec exec = opencl().compile(model, only_opencl()).exec();
  for (int i = 0; i < 100; ++i) {
    exec.bind("x", small_input(1 + i % 5 * 7, i % 5));
    RunOptions options;
    if (i >= 50) options.timeout = std::chrono::seconds(30);
    const uint64_t launches = cl_layer().launches;
    exec.run(options);
    EXPECT_GT(cl_layer().launches - launches, 16u);
    results.push_back(exec.output(0u).values<float>());
  }
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(results[i], results[i + 50]) << i;
}

TEST_F(InstanceTest, PlansAgainForOtherNumbersOfAnInput) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 3});
  const uint32_t axes = graph.input("axes", BP_DTYPE_INT64, {1});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("CumSum", "y", {x, axes})}), only_opencl()).exec();
  exec.bind("x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  Tensor axis = Tensor::of<int64_t>({1}, {0});
  exec.bind("axes", axis);
  for (int i = 0; i < 3; ++i) {  // same memory, other contents: no rebinding
    const int64_t along = i % 2;
    *axis.data<int64_t>() = along;
    exec.run();
    if (along == 0)
      EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, 2, 3, 5, 7, 9));
    else
      EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, 3, 6, 4, 9, 15));
  }
}

// The first run cannot be planned before a point is reached, as the plan depends on an input.
TEST_F(InstanceTest, ARunThatWaitsForItsInputKeepsNoOtherWaiting) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 3});
  const uint32_t axes = graph.input("axes", BP_DTYPE_INT64, {1});
  const Environment env = opencl();
  const Session session = env.compile(graph.finish({graph.node("CumSum", "y", {x, axes})}), only_opencl());
  uint64_t id = 0;
  for (const Device& device : env.devices())
    if (id == 0 && device.name.starts_with("opencl")) id = device.info.id;
  const Stream stream = env.stream(id);
  const Semaphore reached;
  Exec waiting = session.exec(), other = session.exec();
  for (Exec* const exec : {&waiting, &other}) {
    exec->bind("x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    exec->bind("axes", Tensor::of<int64_t>({1}, {1}));
  }
  std::thread first([&] {
    RunOptions how;
    how.stream = &stream;
    how.waits = {reached.at(1)};
    EXPECT_EQ(failure([&] { waiting.run(how); }).status(), BP_OK);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the first run waits by now
  auto second = std::async(std::launch::async, [&] { other.run(); });
  EXPECT_EQ(second.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  reached.signal(1);
  first.join();
  second.get();
  stream.wait();
  for (Exec* const exec : {&waiting, &other})
    EXPECT_THAT(exec->output(0u).values<float>(), ElementsAre(1, 3, 6, 4, 9, 15));
}

// The extents of the first output are requested before the run, without the numbers that CumSum reads.
TEST_F(InstanceTest, PlansForNumbersOfAnInputWhileExtentsDiffer) {
  Graph graph;
  const uint32_t v = graph.input("v", BP_DTYPE_FLOAT, {-1}, {"n"});
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 3});
  const uint32_t axes = graph.input("axes", BP_DTYPE_INT64, {1});
  const uint32_t sums = graph.node("CumSum", "sums", {x, axes});
  const Model model = graph.finish({graph.node("Relu", "y", {v}), graph.node("Neg", "z", {sums})});
  const Environment env = opencl();
  Exec exec = env.compile(model, only_opencl()).exec();
  exec.bind("x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  exec.bind("axes", Tensor::of<int64_t>({1}, {1}));
  for (const std::vector<float>& values : {std::vector<float>{-1, 2}, {3}}) {
    exec.bind("v", Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
    exec.run();
    EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{static_cast<int64_t>(values.size())}));
    EXPECT_THAT(exec.output(1u).values<float>(), ElementsAre(-1, -3, -6, -4, -9, -15));
  }
}

TEST_F(InstanceTest, RefusesFactorsThatDoNotFit) {
  const Environment env = opencl();
  for (const char* op : {"MatMul", "Gemm"}) {
    Graph graph;
    const uint32_t a = graph.input("a", BP_DTYPE_FLOAT, {-1, -1}, {"m", "k"});
    const uint32_t b = graph.input("b", BP_DTYPE_FLOAT, {-1, -1}, {"l", "n"});
    Exec exec = env.compile(graph.finish({graph.node(op, "y", {a, b})}), only_opencl()).exec();
    exec.bind("a", Tensor::of<float>({2, 3}, std::vector<float>(6, 1)));
    exec.bind("b", Tensor::of<float>({2, 2}, std::vector<float>(4, 1)));
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_TYPE_MISMATCH) << op;
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
