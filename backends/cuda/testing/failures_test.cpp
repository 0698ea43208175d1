// SPDX-License-Identifier: Apache-2.0
// Makes every function of the driver fail, at each of its calls in turn, while a framework uses most of what the
// backend has.
#include <chrono>
#include <set>
#include <thread>

#include "driver/cuda.h"
#include "testing/captures_fixture.h"
#include "testing/small_model.h"

namespace backplane::cuda::testing {
namespace {

// Expands the macros by which cuda.h gives functions the names of their newest versions.
#define BACKPLANE_TEXT_OF(name) #name
#define BACKPLANE_NAME(name) BACKPLANE_TEXT_OF(name)
#define BACKPLANE_ENTRY(name) names.emplace_back(BACKPLANE_NAME(name))
std::vector<std::string> driver_functions() {
  std::vector<std::string> names;
  BACKPLANE_CUDA_FUNCTIONS(BACKPLANE_ENTRY)
  return names;
}
#undef BACKPLANE_ENTRY
#undef BACKPLANE_NAME
#undef BACKPLANE_TEXT_OF

// Functions that are not made to fail: those that free an object, which would then leak, those that the backend calls
// in order to free something, and the one that names errors.
const std::set<std::string> kLast = {"cuGetErrorName",     "cuCtxPushCurrent_v2", "cuDevicePrimaryCtxRelease_v2",
                                     "cuCtxPopCurrent_v2", "cuModuleUnload",      "cuMemFree_v2",
                                     "cuMemFreeHost",      "cuMemHostUnregister", "cuStreamDestroy_v2",
                                     "cuEventDestroy_v2",  "cuGraphExecDestroy",  "cuGraphDestroy"};

class Failures : public CapturesTest {
 protected:
  void SetUp() override {
    CapturesTest::SetUp();
    ASSERT_EQ(cuStreamCreate(&queue_, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamDestroy(queue_), CUDA_SUCCESS);
    CapturesTest::TearDown();
  }

  // The model's kernels check indices, so each run clears and reads the fault word.
  static Model rows_by_index() {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4, 8}), i = graph.input("i", BP_DTYPE_INT64, {2});
    return graph.finish({graph.node("Relu", "y", {graph.node("Gather", "rows", {x, i}, {{"axis", 0}})})});
  }

  // Runs with the host's and with the device's memory, in streams of the device and of the framework, with semaphores
  // of both; fills, copies and traces.
  void use(const Floats& x, const Floats& y) {
    const Environment env = Failures::env();
    Exec exec = env.compile(gpu::testing::small_model(), only("cuda")).exec();
    exec.bind("x", gpu::testing::small_input(3, 0));
    Exec checked = env.compile(rows_by_index(), only("cuda")).exec();
    checked.bind("i", Tensor::of<int64_t>({2}, {3, 0}));
    checked.bind("x", gpu::testing::small_input(4, 0));
    for (int i = 0; i < 3; ++i) {
      exec.run();
      checked.run();
    }
    const uint64_t device = device_id(env);

    std::vector<float> floats(1024);
    const uint64_t bytes = floats.size() * sizeof(float);
    bp_buffer_t host{};
    host.address = floats.data();
    host.bytes = bytes;
    const Buffer filled = env.allocate(device, bytes), copied = env.allocate(device, bytes);
    filled.fill(2.5f);
    env.copy(filled.abi(), copied.abi(), bytes);
    env.copy(copied.abi(), host, bytes);
    EXPECT_EQ(floats.back(), 2.5f);
    env.copy(host, copied.abi(), bytes);

    Exec one = bound_to(env, product_and_kernels(), x, y), other = bound_to(env, product_and_kernels(), x, y);
    const bp_native_t native{sizeof native, BP_NATIVE_CUDA_STREAM, reinterpret_cast<uint64_t>(queue_)};
    const NativeSemaphore on_device(env.get(), device);
    const Semaphore on_host;
    const Stream own = env.stream(device), framework = env.stream(device, &native);  // destroyed before the semaphores
    for (uint64_t i = 1; i < 4; ++i) {
      RunOptions first, second;
      first.stream = &own;
      first.waits = {on_host.at(i)};
      first.signals = {on_device.at(i)};
      second.stream = &framework;
      second.waits = {on_device.at(i)};
      const auto signalled = std::shared_ptr<void>(nullptr, [&](void*) { on_host.signal(i); });  // also after a failure
      one.run(first);
      other.run(second);
    }
    own.wait();
    framework.wait();
    env.start_trace();
    one.run();
    EXPECT_FALSE(env.stop_trace().empty());
  }

  CUstream queue_ = nullptr;
};

TEST_F(Failures, OfEveryCallOfTheDriverAreReportedAndLeakNothing) {
  const Floats x = floats(product_and_kernels().x), y = floats({kRows, kColumns});
  use(x, y);
  imports_.clear();
  const std::map<std::string, int64_t> before = objects();
  std::vector<std::string> unused;
  for (const std::string& function : driver_functions()) {
    if (kLast.contains(function)) continue;
    SCOPED_TRACE(function);
    uint64_t good = 0;
    for (bool refused = true; refused; ++good) {
      SCOPED_TRACE(good);
      ASSERT_LT(good, 1000u);
      const uint64_t calls = standin_calls(function.c_str());
      standin_fail(function.c_str(), CUDA_ERROR_OUT_OF_MEMORY, good);
      const Error error = failure([&] { use(x, y); });
      standin_fail(nullptr, CUDA_SUCCESS, 0);
      imports_.clear();
      refused = standin_calls(function.c_str()) - calls > good;
      EXPECT_THAT(error.status(), ::testing::AnyOf(BP_OK, BP_RESOURCE_EXHAUSTED, BP_NOT_FOUND, BP_UNSUPPORTED))
          << error.text();
      EXPECT_TRUE(refused || error.status() == BP_OK) << error.text();
      // A thread that reported an end may release its last event after the environment has been destroyed.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (objects() != before && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_EQ(objects(), before);
    }
    if (good == 1) unused.push_back(function);
    use(x, y);
    imports_.clear();
  }
  // The functions that this program does not use are for two devices (peers_test.cpp), for large host memory that the
  // loader does not copy, for a framework's context, and for polling after a wait has failed.
  EXPECT_THAT(unused, ::testing::UnorderedElementsAre("cuMemcpyPeerAsync", "cuMemHostRegister_v2", "cuCtxGetDevice",
                                                      "cuStreamQuery"));
}

}  // namespace
}  // namespace backplane::cuda::testing
