// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt, on its stand-in: which are taken, with which epilogues, and what happens when calls fail.
#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>

#include "testing/standin_fixture.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kRows = 24, kInner = 40, kColumns = 32;

Tensor numbers(const std::vector<int64_t>& extents, int seed) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  std::vector<float> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 101) / 101 - 0.5f;
  return Tensor::of<float>(extents, all);
}

// Builds a graph step by step, with weights that have numbers.
struct Steps : Graph {
  uint32_t weight(const std::vector<int64_t>& extents, int seed) {
    const std::string name = "w" + std::to_string(++count);
    return Graph::weight(name, numbers(extents, seed));
  }
  uint32_t operator()(const std::string& op, const std::vector<uint32_t>& inputs,
                      const std::map<std::string, AttributeValue>& attributes = {}) {
    NodeOptions how;
    how.attributes = attributes;
    how.name = "n" + std::to_string(++count);
    return Builder::node(op, inputs, how);
  }
  int count = 0;
};

struct Case {
  const char* name;
  std::vector<int64_t> x;  // the extents of the input
  std::function<uint32_t(Steps& add, uint32_t x)> build;
  uint64_t products = 1, kernels = 0;  // of a run
  float bound = 1e-5f;
};

Model model_of(const Case& one) {
  Steps steps;
  const uint32_t x = steps.input("x", BP_DTYPE_FLOAT, one.x);
  return steps.finish({one.build(steps, x)});
}

const std::map<std::string, AttributeValue> kTanh{{"approximate", std::string("tanh")}};

std::vector<Case> cases() {
  const std::vector<int64_t> x{kRows, kInner}, y{kRows, kColumns}, w{kInner, kColumns};
  const auto to = [](bp_dtype_t type) {
    return std::map<std::string, AttributeValue>{{"to", int64_t{type == BP_DTYPE_FLOAT ? 1 : 10}}};
  };
  return {
      {"product", x,
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight(w, 1)});
       }},
      {"bias", x,
       [=](Steps& add, uint32_t a) {
         return add("Add", {add("MatMul", {a, add.weight(w, 1)}), add.weight({kColumns}, 2)});
       }},
      {"relu", x,
       [=](Steps& add, uint32_t a) {
         return add("Relu", {add("MatMul", {a, add.weight(w, 1)})});
       }},
      {"bias, gelu by tanh", x,
       [=](Steps& add, uint32_t a) {
         return add("Gelu", {add("Add", {add.weight({kColumns}, 2), add("MatMul", {a, add.weight(w, 1)})})}, kTanh);
       }},
      {"gelu by erf is a kernel of its own", x,
       [=](Steps& add, uint32_t a) {
         return add("Gelu", {add("MatMul", {a, add.weight(w, 1)})});
       },
       1, 1},
      {"a scalar factor is a kernel of its own", x,
       [=](Steps& add, uint32_t a) {
         return add("Mul", {add("MatMul", {a, add.weight(w, 1)}), add.weight({1}, 2)});
       },
       1, 1},
      {"nothing follows the activation", x,
       [=](Steps& add, uint32_t a) {
         return add("Add", {add("Relu", {add("MatMul", {a, add.weight(w, 1)})}), add.weight({kColumns}, 2)});
       },
       1, 1},
      {"bias, residual, relu", x,
       [=](Steps& add, uint32_t a) {
         const uint32_t sum = add("Add", {add("MatMul", {a, add.weight(w, 1)}), add.weight({kColumns}, 2)});
         return add("Relu", {add("Add", {add.weight(y, 3), sum})});
       }},
      {"two residuals", x,
       [=](Steps& add, uint32_t a) {
         const uint32_t sum = add("Add", {add("MatMul", {a, add.weight(w, 1)}), add.weight(y, 2)});
         return add("Add", {add.weight(y, 3), sum});
       },
       1, 1},
      {"product with two readers", x,
       [=](Steps& add, uint32_t a) {
         const uint32_t p = add("MatMul", {a, add.weight(w, 1)});
         return add("Mul", {add("Relu", {p}), p});
       },
       1, 1},
      {"two layers", x,
       [=](Steps& add, uint32_t a) {
         const uint32_t hidden =
             add("Relu", {add("Add", {add("MatMul", {a, add.weight(w, 1)}), add.weight({kColumns}, 2)})});
         return add("Add", {add("MatMul", {hidden, add.weight({kColumns, kInner}, 3)}), a});
       },
       2},
      {"Gemm with a bias", x,
       [=](Steps& add, uint32_t a) {
         return add("Gemm", {a, add.weight({kColumns, kInner}, 1), add.weight({kColumns}, 2)},
                    {{"transB", int64_t{1}}});
       }},
      {"Gemm, both transposed, scaled",
       {kInner, kRows},
       [=](Steps& add, uint32_t a) {
         return add("Gemm", {a, add.weight({kColumns, kInner}, 1), add.weight(y, 2)},
                    {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}, {"beta", 2.0f}});
       }},
      {"Gemm with a column is scaled apart", x,
       [=](Steps& add, uint32_t a) {
         return add("Gemm", {a, add.weight(w, 1), add.weight({kRows, 1}, 2)});
       },
       1, 1},
      {"batch",
       {2, 3, kRows, kInner},
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight({2, 3, kInner, kColumns}, 1)});
       }},
      {"one matrix on the left of a batch",
       {kRows, kInner},
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight({6, kInner, kColumns}, 1)});
       }},
      {"one matrix on the right of a batch",
       {6, kRows, kInner},
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight(w, 1)});
       }},
      {"Transpose is read in place",
       {2, 3, kColumns, kInner},
       [=](Steps& add, uint32_t b) {
         const std::map<std::string, AttributeValue> swap{{"perm", std::vector<int64_t>{0, 1, 3, 2}}};
         return add("MatMul", {add.weight({2, 3, kRows, kInner}, 1), add("Transpose", {b}, swap)});
       }},
      {"Transpose of the left side",
       {6, kInner, kRows},
       [=](Steps& add, uint32_t a) {
         const std::map<std::string, AttributeValue> swap{{"perm", std::vector<int64_t>{0, 2, 1}}};
         return add("MatMul", {add("Transpose", {a}, swap), add.weight({6, kInner, kColumns}, 1)});
       }},
      {"Transpose of a batch that becomes a tall matrix is a kernel",
       {6, kInner, kRows},
       [=](Steps& add, uint32_t a) {
         const std::map<std::string, AttributeValue> swap{{"perm", std::vector<int64_t>{0, 2, 1}}};
         return add("MatMul", {add("Transpose", {a}, swap), add.weight(w, 1)});
       },
       1,
       1},
      {"Transpose of other dimensions is a kernel",
       {3, 2, kRows, kInner},
       [=](Steps& add, uint32_t a) {
         const std::map<std::string, AttributeValue> heads{{"perm", std::vector<int64_t>{1, 0, 2, 3}}};
         return add("MatMul", {add("Transpose", {a}, heads), add.weight({2, 3, kInner, kColumns}, 1)});
       },
       1,
       1},
      {"Transpose with two readers is a kernel",
       {kRows, kRows},
       [=](Steps& add, uint32_t a) {
         const uint32_t t = add("Transpose", {a});
         return add("MatMul", {t, t});
       },
       1,
       1},
      {"a batch that repeats in groups is a kernel",
       {2, 3, kRows, kInner},
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight({3, kInner, kColumns}, 1)});
       },
       0,
       1},
      {"small products are a kernel",
       {4, kInner},
       [=](Steps& add, uint32_t a) {
         return add("MatMul", {a, add.weight({kInner, 5}, 1)});
       },
       0,
       1},
      {"fp16", x,
       [=](Steps& add, uint32_t a) {
         const uint32_t b = add("Cast", {add.weight(w, 1)}, to(BP_DTYPE_FLOAT16));
         const uint32_t c = add("Cast", {add.weight({kColumns}, 2)}, to(BP_DTYPE_FLOAT16));
         const uint32_t product = add("Add", {add("MatMul", {add("Cast", {a}, to(BP_DTYPE_FLOAT16)), b}), c});
         return add("Cast", {product}, to(BP_DTYPE_FLOAT));
       },
       1, 2, 2e-3f},
      {"integers are a kernel", x,
       [=](Steps& add, uint32_t a) {
         const std::map<std::string, AttributeValue> whole{{"to", int64_t{6}}};
         const uint32_t product = add("MatMul", {add("Cast", {a}, whole), add("Cast", {add.weight(w, 1)}, whole)});
         return add("Cast", {product}, to(BP_DTYPE_FLOAT));
       },
       0, 2},
  };
}

class Products : public StandinTest {
 protected:
  static Exec bound(const Environment& env, const char* device, const Case& one, uint32_t compute_types = 0) {
    SessionOptions how = only(device);
    how.compute_types = compute_types;
    Exec exec = env.compile(model_of(one), how).exec();
    exec.bind("x", numbers(one.x, 0));
    return exec;
  }
  static std::vector<float> results(const Environment& env, const char* device, const Case& one) {
    Exec exec = bound(env, device, one);
    exec.run();
    return exec.output(0u).values<float>();
  }
  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected, float bound) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], bound * std::max(1.0f, std::abs(expected[i]))) << i;
  }
};

TEST_F(Products, EachIsComputedWhereItShouldBe) {
  const Environment env = Products::env();
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = results(env, "cpu", one);
    Exec exec = bound(env, "cuda", one);
    exec.run();
    const uint64_t products = standin_calls("cublasLtMatmul"), kernels = standin_calls("cuLaunchKernel");
    exec.run();
    EXPECT_EQ(standin_calls("cublasLtMatmul") - products, one.products);
    EXPECT_EQ(standin_calls("cuLaunchKernel") - kernels, one.kernels);
    expect_near(exec.output(0u).values<float>(), expected, one.bound);
  }
}

TEST_F(Products, TheOptionChoosesBetweenLibraryAndOwnKernels) {
  const Case one = cases().front();
  const std::vector<float> expected = results(env(), "cpu", one);
  for (const char* use : {"measured", "library", "own"}) {
    const uint64_t created = standin_calls("cublasLtCreate"), products = standin_calls("cublasLtMatmul");
    expect_near(results(env({{"cuda.products", use}}), "cuda", one), expected, one.bound);
    const bool used = std::string_view(use) != "own";
    EXPECT_EQ(standin_calls("cublasLtCreate") != created, used) << use;
    EXPECT_EQ(standin_calls("cublasLtMatmul") != products, used) << use;
  }
  const Error refused = failure([&] { results(env({{"cuda.products", "fast"}}), "cuda", one); });
  EXPECT_EQ(refused.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(refused.text(), HasSubstr("measured, library or own"));
}

TEST_F(Products, Tf32IsUsedOnlyWhereTheSessionAllowsItAndIsNamed) {
  const Environment env = Products::env();
  const Case one = cases().front();
  const std::vector<float> expected = results(env, "cpu", one);
  for (const uint32_t allowed : {0u, BP_COMPUTE_BF16, BP_COMPUTE_TF32 | BP_COMPUTE_BF16}) {
    SessionOptions how = only("cuda");
    how.compute_types = allowed;
    const Session session = env.compile(model_of(one), how);
    const uint32_t used = allowed & BP_COMPUTE_TF32;
    for (const Device& device : env.devices()) {
      if (device.name == "cuda") {
        EXPECT_EQ(session.verdict(0, device.info.id).compute_types, used);
      }
    }
    Exec exec = session.exec();
    exec.bind("x", numbers(one.x, 0));
    exec.run();
    const std::vector<float> found = exec.output(0u).values<float>();
    float most = 0;
    for (size_t i = 0; i < expected.size(); ++i) most = std::max(most, std::abs(found[i] - expected[i]));
    if (used != 0)
      EXPECT_THAT(most, AllOf(::testing::Gt(1e-5f), ::testing::Lt(1e-2f)));
    else
      EXPECT_LT(most, 1e-5f);
  }
}

// The stand-in's algorithm 1 is the fastest. A second process, or here a second environment, measures nothing.
TEST_F(Products, TheFastestAlgorithmIsMeasuredOnce) {
  Case one = cases().front();
  one.x[0] = kRows + 1;  // a problem that no other test has
  const uint64_t before = standin_calls("cublasLtMatmul");
  { bound(env(), "cuda", one); }
  EXPECT_GT(standin_calls("cublasLtMatmul"), before);
  for (int again = 0; again < 2; ++again) {
    const uint64_t measured = standin_calls("cublasLtMatmul"), fastest = standin_calls("algorithm 1");
    Exec exec = bound(env(), "cuda", one);
    EXPECT_EQ(standin_calls("cublasLtMatmul"), measured);
    exec.run();
    EXPECT_EQ(standin_calls("algorithm 1"), fastest + 1);
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cuda"))
      std::filesystem::resize_file(entry, std::filesystem::file_size(entry) / 2);
    if (again == 0) bound(env(), "cuda", one);  // damaged entries are measured again
  }
}

TEST_F(Products, TheLogNamesTheImplementation) {
  std::mutex mutex;
  std::vector<std::string> lines;
  EnvironmentOptions how = options();
  how.log_level = BP_LOG_DEBUG;
  how.log = [&](uint32_t, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  const Environment env(how);
  for (const Case& one : cases()) bound(env, "cuda", one);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(lines, Contains(HasSubstr("MatMul 'n2': product=library")));
  EXPECT_THAT(lines, Contains(HasSubstr("MatMul 'n2': product=tiles (library: fewer than")));
  EXPECT_THAT(lines, Contains(HasSubstr("product=tiles (library: its matrices repeat in groups)")));
}

TEST_F(Products, ABoundRunAllocatesNothingAndDoesNotWait) {
  const Environment env = Products::env();
  Exec exec = bound(env, "cuda", cases()[7]);
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
  const Case one = cases().front();
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

// Runs a product on a copy of the plugin in which `from` is replaced by `to`, a text of equal length. Returns the log.
class OtherPlugin : public Products {
 protected:
  std::string log_of_run(const std::string& from, const std::string& to) {
    std::ifstream in(options().backend_files[0], std::ios::binary);
    std::string plugin{std::istreambuf_iterator<char>(in), {}};
    size_t replaced = 0;
    for (size_t at = plugin.find(from); at != std::string::npos; at = plugin.find(from, at)) {
      plugin.replace(at, from.size(), to);
      ++replaced;
    }
    EXPECT_GT(replaced, 0u);
    const std::filesystem::path path = folder_ / to / "libbackplane_cuda.so";
    std::filesystem::create_directory(folder_ / to);
    std::ofstream(path, std::ios::binary) << plugin;
    EnvironmentOptions how = options();
    how.backend_files[0] = path;
    how.log_level = BP_LOG_DEBUG;
    std::mutex mutex;
    std::string log;
    how.log = [&](uint32_t, std::string_view line) {
      const std::lock_guard lock(mutex);
      log.append(line).append("\n");
    };
    const Case one = cases()[1];
    const std::vector<float> expected = results(env(), "cpu", one);
    const uint64_t products = standin_calls("cublasLtMatmul");
    {
      const Environment env(how);
      SessionOptions session = only("cuda");
      session.compute_types = BP_COMPUTE_TF32;
      Exec exec = env.compile(model_of(one), session).exec();
      exec.bind("x", numbers(one.x, 0));
      exec.run();
      expect_near(exec.output(0u).values<float>(), expected, one.bound);
    }
    EXPECT_EQ(standin_calls("cublasLtMatmul"), products);
    const std::lock_guard lock(mutex);
    return log;
  }
};

TEST_F(OtherPlugin, WithoutTheLibraryTheKernelsComputeAndTheLogSaysWhy) {
  EXPECT_THAT(log_of_run("libcublasLt.so", "libcublasLx.so"),
              HasSubstr("product=tiles (library: cuBLASLt not found: libcublasLx.so.13: cannot open"));
}

TEST_F(OtherPlugin, TheRealLibraryDoesNotStartWithoutAGpu) {
  if (!std::filesystem::exists("/usr/local/cuda/lib64/libcublasLt.so")) GTEST_SKIP() << "there is no CUDA toolkit";
  EXPECT_THAT(log_of_run("libcublasLt.so.1", "libcublasLx.so.1"),
              HasSubstr("product=tiles (library: starting cuBLASLt: CUBLAS_STATUS_NOT_INITIALIZED"));
}

// ---- failures -------------------------------------------------------------------------------------------------------

// Makes each function fail from its first call on, then from its second, and so on until no call fails. A session
// either computes with the engine's kernel, or ends with an error; nothing leaks.
TEST_F(Products, EveryCallMayFail) {
  const Case one = cases()[7];
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
      standin_fail(function, static_cast<CUresult>(kAllocFailed), good);
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

TEST_F(Products, ManyRunsLeakNothing) {
  const Environment env = Products::env();
  const Case one = cases()[10];
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
