// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt when something is unusual: memory that is not aligned, calls that fail, a library that is
// missing or does not start. Also checks that runs allocate nothing and that no objects leak.
#include <atomic>
#include <cstring>
#include <thread>

#include "testing/other_plugin.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::HasSubstr;

// relu(x w + bias + matrix): one call of the library.
Case with_epilogue() {
  return {"bias, residual, relu", {kRows, kInner}, [](Steps& add, uint32_t a) {
            const uint32_t product = add("MatMul", {a, add.weight({kInner, kColumns}, 1)});
            const uint32_t sum = add("Add", {product, add.weight({kColumns}, 2)});
            return add("Relu", {add("Add", {add.weight({kRows, kColumns}, 3), sum})});
          }};
}

TEST_F(Products, ABoundRunAllocatesNothingAndDoesNotWait) {
  const Environment env = Products::env();
  Exec exec = bound(env, "cuda", with_epilogue());
  exec.run();
  const std::map<std::string, int64_t> before = objects();
  const auto counts = [] {
    std::vector<uint64_t> all;
    for (const char* function : {"cuMemAlloc_v2", "cuStreamSynchronize", "cublasLtMatmulAlgoGetHeuristic",
                                 "cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate"})
      all.push_back(standin_calls(function));
    return all;
  };
  const std::vector<uint64_t> calls = counts();
  for (int i = 0; i < 100; ++i) exec.run();
  EXPECT_EQ(counts(), calls);
  EXPECT_EQ(objects(), before);
}

// A device pointer of the framework may have any alignment.
TEST_F(Products, AMisalignedPointerGetsAnotherAlgorithm) {
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
    const uint64_t asked = standin_calls("cublasLtMatmulAlgoGetHeuristic");
    for (int i = 0; i < 3; ++i) exec.run();
    EXPECT_EQ(standin_calls("cublasLtMatmulAlgoGetHeuristic"), asked + 1);
    expect_near(exec.output(0u).values<float>(), expected, one.bound);
    exec.bind("x", numbers(one.x, 0));
  }
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  CUcontext popped = nullptr;
  cuCtxPopCurrent(&popped);
  cuDevicePrimaryCtxRelease(0);
}

// ---- the library is missing, or cannot start ------------------------------------------------------------------------

TEST_F(OtherPlugin, WithoutTheLibraryTheKernelsComputeAndTheLogSaysWhy) {
  EXPECT_THAT(log_of_run(with_epilogue(), "libcublasLt.so", "libcublasLx.so"),
              HasSubstr("product=tiles (library: cuBLASLt not found: libcublasLx.so.13: cannot open"));
}

TEST_F(OtherPlugin, TheRealLibraryDoesNotStartWithoutAGpu) {
  if (const std::string why = no_real_library("/usr/local/cuda/lib64/libcublasLt.so"); !why.empty())
    GTEST_SKIP() << why;
  EXPECT_THAT(log_of_run(with_epilogue(), "libcublasLt.so.1", "libcublasLx.so.1"),
              HasSubstr("product=tiles (library: starting cuBLASLt: CUBLAS_STATUS_NOT_INITIALIZED"));
}

// ---- failures -------------------------------------------------------------------------------------------------------

// Makes each function fail from its first call on, then from its second, and so on until no call fails. A session
// either has the right results, with the engine's kernel if need be, or ends with an error; nothing leaks.
TEST_F(Products, EveryCallMayFail) {
  const Case one = with_epilogue();
  const std::vector<float> expected = results(env(), "cpu", one);
  results(env(), "cuda", one);
  const std::map<std::string, int64_t> before = objects();
  uint64_t fallbacks = 0;
  for (const char* function :
       {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmul"}) {
    SCOPED_TRACE(function);
    uint64_t good = 0;
    for (bool refused = true; refused; ++good) {
      ASSERT_LT(good, 100u);
      const uint64_t calls = standin_calls(function), products = standin_calls("cublasLtMatmul");
      constexpr int kAllocFailed = 3;
      standin_fail(function, kAllocFailed, good);
      std::vector<float> found;
      const Error error = failure([&] { found = results(env(), "cuda", one); });
      standin_fail(nullptr, CUDA_SUCCESS, 0);
      refused = standin_calls(function) - calls > good;
      if (error.status() == BP_OK)
        expect_near(found, expected, one.bound);
      else
        EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << error.text();
      EXPECT_TRUE(refused || error.status() == BP_OK) << error.text();
      fallbacks += error.status() == BP_OK && standin_calls("cublasLtMatmul") == products;
      EXPECT_EQ(objects(), before);
    }
    EXPECT_GT(good, 1u) << "it was never called";
  }
  EXPECT_GT(fallbacks, 5u);
}

TEST_F(Products, AFailureOnTheDeviceLosesIt) {
  const Environment env = Products::env();
  Exec exec = bound(env, "cuda", with_epilogue());
  exec.run();
  constexpr int kExecutionFailed = 13;
  standin_fail("cublasLtMatmul", kExecutionFailed, 0);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
}

TEST_F(Products, ManyRunsLeakNothing) {
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
        for (int i = 0; i < 100; ++i) {
          exec.run();
          wrong += exec.output(0u).values<float>() != expected ? 1 : 0;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(objects(), before);
}

}  // namespace
}  // namespace backplane::cuda::testing
