// SPDX-License-Identifier: Apache-2.0
// Runs ONNXIFI libraries with vendors' quirks through the loader: devices, runs, streams and options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "testing/library_fixture.h"

namespace onnxifi_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Quirk : public ::testing::TestWithParam<const char*> {};

TEST_P(Quirk, RunsAModelAlone) {
  const Environment env = vendor(GetParam());
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  Tensor x = Tensor::of<float>({2, 2}, {1, 0, 0, 1});
  exec.bind(0, x);
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  static_cast<float*>(x.data())[0] = 20;  // same memory, other contents
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(10, 50, 0, 14));
  exec.bind(0, Tensor::of<float>({2, 2}, {0, 10, 10, 0}));  // other memory
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(20, 50, 0, 30));
}

TEST_P(Quirk, RunsIslandsNextToTheCpu) {
  const Environment env = vendor(GetParam());
  const Session session =
      env.compile(mixed(), pinned({{"r", "onnxifi"}, {"a", "onnxifi"}, {"r2", "onnxifi"}, {"op=Neg", "cpu"}}));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({3}, {-2, 0, 3}));
  for (int run = 0; run < 3; ++run) {
    exec.run();
    EXPECT_THAT(values(exec.output(1)), ElementsAre(0, 0, 3));
    EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 0, 0));
  }
  EXPECT_THAT(session.report(), AllOf(HasSubstr("\"onnxifi\""), HasSubstr("\"cpu\"")));
}

TEST_P(Quirk, IsRunByManyThreads) {
  const Environment env = vendor(GetParam());
  const Session session = env.compile(dense(), on("onnxifi"));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Exec exec = session.exec();
      const auto n = static_cast<float>(10 + t);
      exec.bind(0, Tensor::of<float>({2, 2}, {n, 0, 0, n}));
      for (int run = 0; run < 50; ++run) {
        exec.run();
        right += values(exec.output(0)) == std::vector<float>{n - 10, 2 * n + 10, 3 * n - 10, 4 * n + 10} ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

// The manifest requests isolation. The sandbox lets the process read the folder that the option `path` names.
TEST_P(Quirk, RunsInAProcessOfItsOwn) {
  const Environment env = vendor(GetParam(), {{"loader.isolate", "onnxifi"}});
  ASSERT_EQ(env.devices().back().name.substr(0, 7), "onnxifi");
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  const Session session =
      env.compile(mixed(), pinned({{"r", "onnxifi"}, {"a", "onnxifi"}, {"r2", "onnxifi"}, {"op=Neg", "cpu"}}));
  Exec islands = session.exec();
  islands.bind(0, Tensor::of<float>({3}, {-2, 0, 3}));
  islands.run();
  EXPECT_THAT(values(islands.output(1)), ElementsAre(0, 0, 3));
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, Quirk,
                         ::testing::Values("at_wait", "descriptors", "emulated", "extension", "fork", "late", "plain",
                                           "positional", "silent", "strict", "synchronous"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxifiDevices, AreTheBackendIdsOfALibrary) {
  const Environment env = vendor("plain");
  std::vector<std::string> names;
  for (const Device& device : env.devices()) {
    if (device.name == "cpu") continue;
    names.push_back(device.name + "=" + std::string(view::text(device.info.name)));
    EXPECT_EQ(device.info.kind, BP_DEVICE_NPU);
    EXPECT_EQ(view::text(device.info.vendor), "Test Vendor");
    EXPECT_EQ(view::text(device.info.driver), "1.2.3");
    EXPECT_EQ(device.info.memory_bytes, uint64_t{1} << 30);
    EXPECT_EQ(device.info.flops_fp32, 1e9);
  }
  EXPECT_THAT(names, ElementsAre("onnxifi=Plain: chip 0", "onnxifi:1=Plain: chip 1"));
}

// Each copy of the library has two devices.
TEST(OnnxifiDevices, BeyondTheLoadersLimitAreLeftOut) {
  std::string made = (fs::canonical(fs::temp_directory_path()) / "backplane-XXXXXX").native();
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  for (int i = 0; i < 130; ++i)
    fs::copy_file(folder("plain") + "/libonnxifi-plain.so", made + "/libonnxifi-plain" + std::to_string(i) + ".so");
  EXPECT_EQ(vendors(made).devices().size(), 1u + 256);  // the first is the CPU
  fs::remove_all(made);
}

TEST(OnnxifiDevices, OfALibraryThatReportsNothingAreNamedAfterIt) {
  const Environment env = vendor("silent");
  EXPECT_EQ(view::text(env.devices().back().info.name), "libonnxifi-silent.so");
}

TEST(OnnxifiDevices, HaveNamesInUtf8) {
  const Environment env = vendor("positional");
  EXPECT_EQ(view::text(env.devices().back().info.name), "Posición™: chip 0");
}

TEST(OnnxifiDevices, HaveTextsAndVersionsThatAreBounded) {
  const Environment env = vendor("sizes");
  const Device device = env.devices().back();
  EXPECT_EQ(device.name, "onnxifi");
  const std::string_view name = view::text(device.info.name);
  EXPECT_THAT(std::string(name), HasSubstr("Lies ????"));
  EXPECT_LE(name.size(), 4096u);
  Exec exec = env.compile(dense(), on("onnxifi")).exec();  // in opset 8, the only valid one that the library reports
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

// ---- streams -------------------------------------------------------------------------------------------------------

// The devices have streams, but no memory functions of their own.
TEST(OnnxifiStream, KeepsMemoryUntilItsWorkHasEnded) {
  const Environment env = vendor("plain");
  const uint64_t device = env.devices().back().info.id;
  Exec exec = env.compile(dense(), on(env.devices().back().name)).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  const Stream stream = env.stream(device);
  RunOptions in_stream;
  in_stream.stream = &stream;
  exec.run(in_stream);
  const Semaphore ready;
  const bp_point_t point = ready.at(1);
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  run.waits = &point;
  run.wait_count = 1;
  ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  const bp_allocate_t how{sizeof how, 0, 64, nullptr, nullptr};
  bp_buffer_t buffer{};
  ASSERT_EQ(api().memory_allocate(env.get(), device, &how, &buffer, nullptr), BP_OK);
  std::atomic<bool> is_released{false};
  std::thread releases([&] {
    const bp_release_t what{sizeof what, 0, &buffer, stream.get()};
    api().memory_release(env.get(), &what);
    is_released = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_released) << "while a run in the stream waits";
  ready.signal(1);
  releases.join();
  stream.wait();
}

TEST(OnnxifiOptions, AreChecked) {
  EXPECT_THAT(vendor("plain", {{"onnxifi.weights", "somehow"}}).report(),
              HasSubstr("it must be auto, model or descriptors"));
  const Environment env = vendor("plain", {{"onnxifi.weights", "descriptors"}});
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  EXPECT_EQ(failure([] {
              const Environment model = vendor("descriptors", {{"onnxifi.weights", "model"}});
              model.compile(dense(), on("onnxifi"));
            }).status(),
            BP_UNSUPPORTED);
}

}  // namespace
}  // namespace onnxifi_test
