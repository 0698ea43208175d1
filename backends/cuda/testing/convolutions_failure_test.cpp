// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN when something is unusual: memory that is not aligned, calls that fail, a library that is
// missing or does not start. Also checks that runs allocate nothing and that no objects leak.
#include <atomic>
#include <cstring>
#include <thread>

#include "testing/other_plugin.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kChannels = 6, kMaps = 8, kSize = 10;

// A convolution with bias, residual and Relu: one call of the library.
Case with_epilogue() {
  return {"bias, residual, relu", {2, kChannels, kSize, kSize}, [](Steps& add, uint32_t x) {
            const uint32_t y = add("Conv", {x, add.weight({kMaps, kChannels, 3, 3}, 1), add.weight({kMaps}, 2)},
                                   {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
            return add("Relu", {add("Add", {add.weight({2, kMaps, kSize, kSize}, 3), y})});
          }};
}

// Two calls of the library, because a plan of one command is not captured.
Case two_layers() {
  return {"two layers", {2, kMaps, kSize, kSize}, [](Steps& add, uint32_t x) {
            for (const int seed : {1, 2}) x = add("Relu", {add("Conv", {x, add.weight({kMaps, kMaps, 3, 3}, seed)})});
            return x;
          }};
}

TEST_F(Convolutions, ABoundRunAllocatesNothingAndDoesNotWait) {
  for (const char* graphs : {"on", "off"}) {
    const Environment env = Products::env({{"cuda.graphs", graphs}});
    Exec exec = bound(env, "cuda", two_layers());
    for (int i = 0; i < 3; ++i) exec.run();
    const std::map<std::string, int64_t> before = objects();
    const auto counts = [] {
      std::vector<uint64_t> all;
      for (const char* function : {"cuMemAlloc_v2", "cuStreamSynchronize", "cudnnBackendCreateDescriptor"})
        all.push_back(standin_calls(function));
      return all;
    };
    const std::vector<uint64_t> calls = counts();
    const uint64_t executed = standin_calls("cudnnBackendExecute");
    for (int i = 0; i < 100; ++i) exec.run();
    EXPECT_EQ(counts(), calls);
    EXPECT_EQ(objects(), before);
    EXPECT_EQ(standin_calls("cudnnBackendExecute") - executed, std::string_view(graphs) == "on" ? 0u : 200u);
  }
}

// A device pointer of the framework may have any alignment.
TEST_F(Convolutions, AMisalignedPointerGetsAnotherPlan) {
  const Environment env = Products::env();
  const Case one = with_epilogue();
  const std::vector<float> expected = results(env, "cpu", one);
  Exec exec = bound(env, "cuda", one);
  exec.run();
  const std::vector<float> x = numbers(one.x, 0).values<float>();
  const uint64_t bytes = x.size() * sizeof(float);
  CUdeviceptr memory = 0;
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  cuCtxPushCurrent(context);
  ASSERT_EQ(cuMemAlloc(&memory, bytes + sizeof(float)), CUDA_SUCCESS);
  std::memcpy(reinterpret_cast<void*>(memory + sizeof(float)), x.data(), bytes);  // host memory, in the stand-in
  for (const Device& device : env.devices()) {
    if (device.name != "cuda") continue;
    bp_external_t external{};
    external.size = sizeof external;
    external.kind = BP_EXTERNAL_CUDA_POINTER;
    external.handle = memory + sizeof(float);
    external.bytes = bytes;
    const Buffer imported = env.import_memory(device.info.id, external);
    exec.bind_memory(0, imported.tensor(BP_DTYPE_FLOAT, one.x));
    exec.run();
    const uint64_t made = standin_calls("cudnnBackendCreateDescriptor");
    for (int i = 0; i < 3; ++i) exec.run();
    EXPECT_EQ(standin_calls("cudnnBackendCreateDescriptor"), made);
    expect_near(exec.output(0u).values<float>(), expected, one.bound);
    exec.bind("x", numbers(one.x, 0));
  }
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  CUcontext popped = nullptr;
  cuCtxPopCurrent(&popped);
  cuDevicePrimaryCtxRelease(0);
}

// Makes each function fail from its first call on, then from its second, and so on until no call fails. A session
// either has the right results, with the engine's kernels if need be, or ends with an error; nothing leaks.
TEST_F(Convolutions, EveryCallMayFail) {
  const Case one = with_epilogue();
  const std::vector<float> expected = results(env(), "cpu", one);
  results(env(), "cuda", one);
  const std::map<std::string, int64_t> before = objects();
  uint64_t fallbacks = 0;
  for (const char* function :
       {"cudnnCreate", "cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
        "cudnnBackendGetAttribute", "cudnnBackendFinalize", "cudnnBackendExecute"}) {
    SCOPED_TRACE(function);
    // Making a plan takes thousands of calls, so `good` grows in ever larger steps.
    uint64_t good = 0;
    bool refused = true;
    for (; refused; good += 1 + good / 8) {
      ASSERT_LT(good, 20000u);
      const uint64_t calls = standin_calls(function), executed = standin_calls("cudnnBackendExecute");
      constexpr int kHostAllocationFailed = 4003;
      standin_fail(function, kHostAllocationFailed, good);
      std::vector<float> found;
      const Error error = failure([&] { found = results(env(), "cuda", one); });
      standin_fail(nullptr, CUDA_SUCCESS, 0);
      refused = standin_calls(function) - calls > good;
      if (error.status() == BP_OK)
        expect_near(found, expected, one.bound);
      else
        EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << error.text();
      EXPECT_TRUE(refused || error.status() == BP_OK) << error.text();
      fallbacks += error.status() == BP_OK && standin_calls("cudnnBackendExecute") == executed;
      EXPECT_EQ(objects(), before);
    }
    EXPECT_GT(good, 1u) << "it was never called";
  }
  EXPECT_GT(fallbacks, 5u);
}

TEST_F(Convolutions, AFailureOnTheDeviceLosesIt) {
  const Environment env = Products::env();
  Exec exec = bound(env, "cuda", with_epilogue());
  exec.run();
  constexpr int kExecutionFailed = 5000;
  standin_fail("cudnnBackendExecute", kExecutionFailed, 0);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
}

TEST_F(Convolutions, ManyRunsLeakNothing) {
  const Environment env = Products::env();
  const Case one = with_epilogue();
  Exec first = bound(env, "cuda", one);
  first.run();
  const std::vector<float> expected = first.output(0u).values<float>();
  const std::map<std::string, int64_t> before = objects();
  {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        Exec exec = bound(env, "cuda", one);
        for (int i = 0; i < 50; ++i) {
          exec.run();
          wrong += exec.output(0u).values<float>() != expected ? 1 : 0;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(objects(), before);
}

// ---- the library is missing, or cannot start ------------------------------------------------------------------------

TEST_F(OtherPlugin, WithoutCudnnTheKernelsComputeAndTheLogSaysWhy) {
  EXPECT_THAT(log_of_run(with_epilogue(), "libcudnn.so", "libcudnx.so"),
              HasSubstr("(library: cuDNN 9 not found: libcudnx.so.9: cannot open"));
}

TEST_F(OtherPlugin, TheRealCudnnDoesNotStartWithoutAGpu) {
  if (const std::string why = no_real_library("/usr/local/cuda/lib64/libcudnn.so.9"); !why.empty()) GTEST_SKIP() << why;
  // Changes only the first file name that the plugin tries, so it opens the second, which is in /usr/local/cuda.
  EXPECT_THAT(log_of_run(with_epilogue(), std::string("\0libcudnn.so.9", 14), std::string("\0libcudnx.so.9", 14)),
              HasSubstr("(library: starting cuDNN: CUDNN_STATUS_NOT_INITIALIZED"));
}

}  // namespace
}  // namespace backplane::cuda::testing
