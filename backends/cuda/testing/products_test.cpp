// SPDX-License-Identifier: Apache-2.0
// Products on the stand-in for cuBLASLt: which of them the library computes, with which epilogues, in which types, and
// how algorithms are chosen.
#include <cmath>
#include <mutex>

#include "testing/products_fixture.h"

namespace backplane::cuda::testing::products {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

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

// The stand-in's algorithm 1 is the fastest. Once a process has measured that, other processes measure nothing; here,
// an environment stands for a process.
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

// If a run makes the engine's plan, it uses the library's first choice: a run must not wait for measurements.
TEST_F(Products, ExtentsOfARunAreNotMeasured) {
  const Environment env = Products::env();
  Steps steps;
  const uint32_t x = steps.input("x", BP_DTYPE_FLOAT, {-1, kInner}, {"rows", ""});
  const Model model = steps.finish({steps("MatMul", {x, steps.weight({kInner, kColumns}, 1)})});
  const uint64_t before = standin_calls("cublasLtMatmul");
  Exec exec = env.compile(model, only("cuda")).exec();
  for (uint64_t runs = 1; runs <= 3; ++runs) {
    const std::vector<int64_t> extents{100 + static_cast<int64_t>(runs), kInner};
    const uint64_t first = standin_calls("algorithm 0");
    exec.bind("x", numbers(extents, 0));
    exec.run();
    EXPECT_EQ(standin_calls("cublasLtMatmul"), before + runs);
    EXPECT_EQ(standin_calls("algorithm 0"), first + 1);
    Exec expected = env.compile(model, only("cpu")).exec();
    expected.bind("x", numbers(extents, 0));
    expected.run();
    expect_near(exec.output(0u).values<float>(), expected.output(0u).values<float>(), 1e-5f);
  }
}

TEST_F(Products, AttentionNamesAndUsesTf32) {
  const Environment env = Products::env();
  const std::vector<int64_t> heads{1, 2, 20, 24};
  Steps steps;
  const uint32_t q = steps.input("x", BP_DTYPE_FLOAT, heads);
  const Model model = steps.finish({steps("Attention", {q, steps.weight(heads, 1), steps.weight(heads, 2)})});
  const auto run = [&](const char* device, uint32_t allowed) {
    SessionOptions how = only(device);
    how.compute_types = allowed;
    const Session session = env.compile(model, how);
    for (const Device& each : env.devices()) {
      if (each.name == device) {
        EXPECT_EQ(session.verdict(0, each.info.id).compute_types, allowed);
      }
    }
    Exec exec = session.exec();
    exec.bind("x", numbers(heads, 0));
    exec.run();
    return exec.output(0u).values<float>();
  };
  const std::vector<float> expected = run("cpu", 0), plain = run("cuda", 0), tf32 = run("cuda", BP_COMPUTE_TF32);
  expect_near(plain, expected, 1e-5f);
  expect_near(tf32, expected, 1e-2f);
  EXPECT_NE(tf32, plain);
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

}  // namespace
}  // namespace backplane::cuda::testing::products
