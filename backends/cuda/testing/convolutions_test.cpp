// SPDX-License-Identifier: Apache-2.0
// Convolutions on the stand-in for cuDNN: which of them the library computes, with which epilogues, in which types, and
// how plans are chosen.
#include <mutex>

#include "testing/products_fixture.h"

namespace backplane::cuda::testing::convolutions {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

using Attributes = std::map<std::string, AttributeValue>;

constexpr int64_t kChannels = 6, kMaps = 8, kSize = 10;
const std::vector<int64_t> kImage{2, kChannels, kSize, kSize}, kResult{2, kMaps, kSize, kSize};
const Attributes kSame{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};

uint32_t conv(Steps& add, uint32_t x, const Attributes& attributes = kSame) {
  return add("Conv", {x, add.weight({kMaps, kChannels, 3, 3}, 1)}, attributes);
}

uint32_t conv_with_bias(Steps& add, uint32_t x) {
  return add("Conv", {x, add.weight({kMaps, kChannels, 3, 3}, 1), add.weight({kMaps}, 2)}, kSame);
}

uint32_t in_type(Steps& add, uint32_t x, int64_t type) {
  const Attributes narrow{{"to", type}}, wide{{"to", int64_t{1}}};
  const uint32_t w = add("Cast", {add.weight({kMaps, kChannels, 3, 3}, 1)}, narrow);
  return add("Cast", {add("Conv", {add("Cast", {x}, narrow), w}, kSame)}, wide);
}

std::vector<Case> cases() {
  return {
      {"convolution", kImage, [](Steps& add, uint32_t x) { return conv(add, x); }},
      {"bias", kImage, conv_with_bias},
      {"bias as a sum", kImage,
       [](Steps& add, uint32_t x) {
         return add("Add", {add.weight({kMaps, 1, 1}, 2), conv(add, x)});
       }},
      {"bias, relu", kImage, [](Steps& add, uint32_t x) { return add("Relu", {conv_with_bias(add, x)}); }},
      {"relu, with a bias of zeros", kImage, [](Steps& add, uint32_t x) { return add("Relu", {conv(add, x)}); }},
      {"residual, with a bias of zeros", kImage,
       [](Steps& add, uint32_t x) {
         return add("Add", {add.weight(kResult, 3), conv(add, x)});
       }},
      {"bias, residual, relu", kImage,
       [](Steps& add, uint32_t x) {
         return add("Relu", {add("Add", {conv_with_bias(add, x), add.weight(kResult, 3)})});
       }},
      {"a block of two layers",
       {2, kMaps, kSize, kSize},
       [](Steps& add, uint32_t x) {
         const std::vector<int64_t> w{kMaps, kMaps, 3, 3};
         const uint32_t hidden = add("Relu", {add("Conv", {x, add.weight(w, 1), add.weight({kMaps}, 2)}, kSame)});
         const uint32_t y = add("Conv", {hidden, add.weight(w, 3), add.weight({kMaps}, 4)}, kSame);
         return add("Relu", {add("Add", {y, x})});
       },
       2},
      {"two biases are a kernel", kImage,
       [](Steps& add, uint32_t x) {
         return add("Add", {conv_with_bias(add, x), add.weight({kMaps, 1, 1}, 3)});
       },
       1, 1},
      {"sigmoid is a kernel", kImage, [](Steps& add, uint32_t x) { return add("Sigmoid", {conv(add, x)}); }, 1, 1},
      {"nothing follows relu", kImage,
       [](Steps& add, uint32_t x) {
         return add("Add", {add("Relu", {conv(add, x)}), add.weight(kResult, 3)});
       },
       1, 1},
      {"strides, dilations, uneven padding", kImage,
       [](Steps& add, uint32_t x) {
         return conv(add, x,
                     {{"strides", std::vector<int64_t>{2, 1}},
                      {"dilations", std::vector<int64_t>{1, 2}},
                      {"pads", std::vector<int64_t>{0, 2, 1, 1}}});
       }},
      {"SAME_LOWER", kImage,
       [](Steps& add, uint32_t x) {
         return conv(add, x, {{"auto_pad", std::string("SAME_LOWER")}, {"strides", std::vector<int64_t>{3, 2}}});
       }},
      {"groups", kImage,
       [](Steps& add, uint32_t x) {
         return add("Relu", {add("Conv", {x, add.weight({kMaps, kChannels / 2, 3, 3}, 1)},
                                 {{"group", int64_t{2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}})});
       }},
      {"depthwise", kImage,
       [](Steps& add, uint32_t x) {
         return add("Conv", {x, add.weight({2 * kChannels, 1, 3, 3}, 1)}, {{"group", kChannels}});
       }},
      {"one dimension",
       {2, kChannels, 100},
       [](Steps& add, uint32_t x) {
         return add("Conv", {x, add.weight({kMaps, kChannels, 5}, 1), add.weight({kMaps}, 2)},
                    {{"pads", std::vector<int64_t>{4, 0}}});
       }},
      {"three dimensions",
       {1, kChannels, 5, 6, 7},
       [](Steps& add, uint32_t x) {
         return add("Relu", {add("Conv", {x, add.weight({kMaps, kChannels, 2, 3, 3}, 1), add.weight({kMaps}, 2)})});
       }},
      {"one position",
       {3, 40, 1, 1},
       [](Steps& add, uint32_t x) {
         return add("Relu", {add("Add", {add("Conv", {x, add.weight({50, 40, 1, 1}, 1)}), add.weight({50, 1, 1}, 2)})});
       }},
      {"small ones are a kernel",
       {1, 2, 5, 5},
       [](Steps& add, uint32_t x) {
         return add("Conv", {x, add.weight({3, 2, 1, 1}, 1)});
       },
       0,
       1},
      {"fp16", kImage, [](Steps& add, uint32_t x) { return in_type(add, x, 10); }, 1, 2, 4e-3f},
      {"bf16", kImage, [](Steps& add, uint32_t x) { return in_type(add, x, 16); }, 1, 2, 3e-2f},
  };
}

TEST_F(Convolutions, EachIsComputedWhereItShouldBe) {
  const Environment env = Products::env();
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = results(env, "cpu", one);
    Exec exec = bound(env, "cuda", one);
    exec.run();
    const uint64_t calls = standin_calls("cudnnBackendExecute"), kernels = standin_calls("cuLaunchKernel");
    exec.run();
    EXPECT_EQ(standin_calls("cudnnBackendExecute") - calls, one.products);
    EXPECT_EQ(standin_calls("cuLaunchKernel") - kernels, one.kernels);
    expect_near(exec.output(0u).values<float>(), expected, one.bound);
  }
  // Engine 0 of the stand-in is not deterministic, and engine 1 sums with reduced precision.
  for (const char* forbidden : {"engine 0", "engine 1"}) EXPECT_EQ(standin_calls(forbidden), 0u) << forbidden;
}

TEST_F(Convolutions, TheOptionChoosesBetweenLibraryAndOwnKernels) {
  const Case one = cases()[6];
  const std::vector<float> expected = results(env(), "cpu", one);
  for (const char* use : {"measured", "library", "own"}) {
    const uint64_t created = standin_calls("cudnnCreate"), calls = standin_calls("cudnnBackendExecute");
    expect_near(results(env({{"cuda.convolutions", use}}), "cuda", one), expected, one.bound);
    const bool used = std::string_view(use) != "own";
    EXPECT_EQ(standin_calls("cudnnCreate") != created, used) << use;
    EXPECT_EQ(standin_calls("cudnnBackendExecute") != calls, used) << use;
  }
  const Error refused = failure([&] { results(env({{"cuda.convolutions", "fast"}}), "cuda", one); });
  EXPECT_EQ(refused.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(refused.text(), HasSubstr("option convolutions is \"fast\"; it must be measured, library or own"));
}

TEST_F(Convolutions, Tf32IsUsedOnlyWhereTheSessionAllowsItAndIsNamed) {
  const Environment env = Products::env();
  const Case one = cases().front();
  const std::vector<float> expected = results(env, "cpu", one);
  const uint64_t measured = standin_calls("engine 4");
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
    EXPECT_EQ(standin_calls("engine 4") > measured, used != 0);
  }
}

// The stand-in's engine 3 is the fastest. Once a process has measured that, other processes measure nothing; here, an
// environment stands for a process.
TEST_F(Convolutions, TheFastestPlanIsMeasuredOnce) {
  Case one = cases()[6];
  one.x[0] = 1;  // a problem that no other test has
  one.build = [](Steps& add, uint32_t x) { return add("Relu", {conv_with_bias(add, x)}); };
  const uint64_t before = standin_calls("cudnnBackendExecute");
  { bound(env(), "cuda", one); }
  EXPECT_GT(standin_calls("cudnnBackendExecute"), before);
  for (int again = 0; again < 2; ++again) {
    const uint64_t measured = standin_calls("cudnnBackendExecute"), fastest = standin_calls("engine 3");
    Exec exec = bound(env(), "cuda", one);
    EXPECT_EQ(standin_calls("cudnnBackendExecute"), measured);
    exec.run();
    EXPECT_EQ(standin_calls("engine 3"), fastest + 1);
  }
}

// If a run makes the engine's plan, it uses the library's first choice: a run must not wait for measurements.
TEST_F(Convolutions, ExtentsOfARunAreNotMeasured) {
  const Environment env = Products::env();
  Steps steps;
  const uint32_t x = steps.input("x", BP_DTYPE_FLOAT, {-1, kChannels, kSize, kSize}, {"images", "", "", ""});
  const Model model = steps.finish({conv_with_bias(steps, x)});
  const uint64_t before = standin_calls("cudnnBackendExecute");
  Exec exec = env.compile(model, only("cuda")).exec();
  for (uint64_t runs = 1; runs <= 3; ++runs) {
    const std::vector<int64_t> extents{3 + static_cast<int64_t>(runs), kChannels, kSize, kSize};
    exec.bind("x", numbers(extents, 0));
    exec.run();
    EXPECT_EQ(standin_calls("cudnnBackendExecute"), before + runs);
    Exec expected = env.compile(model, only("cpu")).exec();
    expected.bind("x", numbers(extents, 0));
    expected.run();
    expect_near(exec.output(0u).values<float>(), expected.output(0u).values<float>(), 1e-5f);
  }
}

TEST_F(Convolutions, TheLogNamesTheImplementation) {
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
  EXPECT_THAT(lines, Contains(HasSubstr("Conv 'n2': convolution=library")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("convolution=windows (library: fewer than"), HasSubstr("winograd: "))));
}

}  // namespace
}  // namespace backplane::cuda::testing::convolutions
