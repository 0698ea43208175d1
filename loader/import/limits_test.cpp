// SPDX-License-Identifier: Apache-2.0
// The memory, time and nesting depth of an import are bounded. The errors about memory and time name the options that
// change these bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "base/budget.h"
#include "import/import.h"
#include "testing/onnx_writer.h"

namespace backplane::model {
namespace {

using namespace testing::onnx;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT, kInt64 = BP_DTYPE_INT64;
const Texts kX{tensor_value("x", kFloat, {2})};

Result<std::shared_ptr<Model>> read(const std::string& bytes, const ImportLimits& limits = {}) {
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  source.limits = limits;
  return import(source);
}

std::string text_of(const Result<std::shared_ptr<Model>>& result) {
  return result.ok() ? "imported" : std::string(result.status().text());
}

// y = relu(x), and a sparse tensor of `elements` floats, all of them zero.
std::string sparse_model(int64_t elements) {
  std::string sparse;
  Writer(sparse).add_message(field::sparse::kValues, tensor("w", kFloat, {0}, std::vector<float>{}));
  Writer(sparse).add_int64(field::sparse::kDims, elements);
  return model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, kX, {value("y")}, {},
                                       {{field::graph::kSparseInitializer, sparse}}));
}

// A chain of `calls` calls to a function with `values` unused values.
std::string calling_model(int calls, int values) {
  Texts names;
  for (int i = 0; i < values; ++i) names.push_back("v" + std::to_string(i));
  const std::string body =
      function("my", "F", {"a"}, {"b"}, {node("Split", {"a"}, names), node("Relu", {"a"}, {"b"})}, {{"", 17}});
  Texts nodes;
  for (int i = 0; i < calls; ++i)
    nodes.push_back(node("F", {"x" + (i ? std::to_string(i) : "")}, {"x" + std::to_string(i + 1)}, {}, "my"));
  return model_bytes({{"", 17}, {"my", 1}}, graph(nodes, kX, {value("x" + std::to_string(calls))}), {body});
}

// A chain of `steps` additions of a thousand constant integers each.
std::string folding_model(int steps) {
  Texts nodes;
  for (int i = 0; i < steps; ++i)
    nodes.push_back(node("Add", {"a" + std::to_string(i), "a0"}, {"a" + std::to_string(i + 1)}));
  return model_bytes({{"", 17}}, graph(nodes, kX, {value("a" + std::to_string(steps))},
                                       {tensor("a0", kInt64, {1000}, std::vector<int64_t>(1000, 1))}));
}

TEST(ImportLimits, ErrorsNameTheBudgetAndItsOption) {
  ImportLimits limits;
  limits.bytes = 1'000'000;
  for (const auto& [bytes, doing] :
       {std::pair{sparse_model(1 << 20), "making sparse tensor 'w' dense"},
        std::pair{calling_model(20, 1000), "inlining functions"}, std::pair{folding_model(100), "folding constants"}}) {
    const auto result = read(bytes, limits);
    ASSERT_FALSE(result.ok()) << doing;
    EXPECT_EQ(result.status().code(), BP_RESOURCE_EXHAUSTED);
    EXPECT_THAT(text_of(result), AllOf(HasSubstr(doing), HasSubstr("1000000 bytes"), HasSubstr("loader.import_bytes")));
    limits.bytes = 0;  // no limit
    EXPECT_EQ(text_of(read(bytes, limits)), "imported");
    limits.bytes = 1'000'000;
  }
}

TEST(ImportLimits, TheDefaultFollowsFromTheFile) {
  EXPECT_EQ(text_of(read(sparse_model(1 << 24))), "imported");  // 64 MB
  EXPECT_THAT(text_of(read(sparse_model(1 << 28))), HasSubstr("loader.import_bytes"));
  EXPECT_EQ(text_of(read(folding_model(2000))), "imported");
  EXPECT_THAT(text_of(read(folding_model(20'000))), HasSubstr("loader.import_bytes"));
  EXPECT_THAT(text_of(read(calling_model(2000, 5000))), HasSubstr("loader.import_bytes"));
}

TEST(ImportLimits, FunctionsThatDoubleForEverEndWithoutABudgetToo) {
  Texts functions{function("my", "F0", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})}, {{"", 17}})};
  for (int i = 1; i < 60; ++i) {
    const std::string before = "F" + std::to_string(i - 1);
    functions.push_back(function("my", "F" + std::to_string(i), {"v"}, {"w"},
                                 {node(before, {"v"}, {"t"}, {}, "my"), node(before, {"t"}, {"w"}, {}, "my")},
                                 {{"my", 1}}));
  }
  ImportLimits none;
  none.bytes = 0;
  none.seconds = 0;
  const auto result = read(
      model_bytes({{"", 17}, {"my", 1}}, graph({node("F59", {"x"}, {"y"}, {}, "my")}, kX, {value("y")}), functions),
      none);
  EXPECT_THAT(text_of(result), HasSubstr("more than 1000000 nodes"));
}

TEST(ImportLimits, TimeIsBounded) {
  ImportLimits limits;
  limits.seconds = 1e-6;
  const auto result = read(folding_model(3000), limits);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), BP_TIMED_OUT);
  EXPECT_THAT(text_of(result), HasSubstr("loader.import_seconds"));
  limits.seconds = 0;
  EXPECT_EQ(text_of(read(folding_model(3000), limits)), "imported");
}

TEST(ImportLimits, ErrorsNameTheTimeThatWasGiven) {
  for (const auto& [seconds, text] :
       {std::pair(1e-7, "limit of 1e-07 s has"), std::pair(0.0005, "limit of 0.0005 s has")}) {
    const Budget budget({.bytes = 0, .seconds = seconds}, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    try {
      budget.look("testing");
      FAIL();
    } catch (const Budget::Exhausted& error) {
      EXPECT_THAT(error.status.text(), HasSubstr(text));
    }
  }
}

TEST(ImportLimits, MemoryThatIsFreeAgainCanBeChargedAgain) {
  Budget budget({.bytes = 100, .seconds = 0}, 0);
  for (int i = 0; i < 10; ++i) {
    budget.charge(80, "testing");
    budget.release(80);
  }
  EXPECT_THROW(budget.charge(UINT64_MAX, "testing"), Budget::Exhausted);
  EXPECT_THROW(budget.charge(1, "testing"), Budget::Exhausted) << "sums do not wrap";
}

TEST(ImportLimits, ProblemsEndAfterAWhile) {
  Model model;
  for (int i = 0; i < 1000; ++i) model.note("problem " + std::to_string(i));
  EXPECT_EQ(model.problems.size(), 257u);
  model.note("problem 3");
  EXPECT_EQ(model.problems.size(), 257u);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 1024 << 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr size_t kStack = 1024 << 10;  // AddressSanitizer's stack frames are about three times as large
#else
constexpr size_t kStack = 256 << 10;
#endif
#else
constexpr size_t kStack = 256 << 10;
#endif

void on_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* self) -> void* {
                  (*static_cast<std::function<void()>*>(self))();
                  return nullptr;
                },
                &body),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string branch(const std::string& deep, const std::string& result) {
  const std::string other = graph({node("Relu", {"x"}, {"o"})}, {}, {value("o")});
  return node("If", {"c"}, {result}, {graph_attribute("then_branch", deep), graph_attribute("else_branch", other)});
}

// Nests `nodes`, which compute `first`, in `depth` Ifs. The outermost If computes `result`.
Texts nested(Texts nodes, const std::string& first, const std::string& result, int depth) {
  std::string made = first;
  for (int i = 0; i < depth; ++i) {
    const std::string body = graph(nodes, {}, {value(made)});
    made = i + 1 < depth ? first + std::to_string(i) : result;
    nodes = {branch(body, made)};
  }
  return nodes;
}

std::string deep_graphs(int depth) {
  return model_bytes({{"", 17}}, graph(nested({node("Relu", {"x"}, {"r"})}, "r", "y", depth),
                                       {kX[0], tensor_value("c", BP_DTYPE_BOOL, {})}, {value("y")}));
}

// A chain of `levels` function calls, each inside `ifs` nested Ifs.
std::string deep_functions(int levels, int ifs) {
  Texts functions{function("my", "F0", {"x", "c"}, {"y"}, {node("Relu", {"x"}, {"y"})}, {{"", 17}})};
  for (int i = 1; i <= levels; ++i) {
    const std::string inner = ifs ? "r" : "y";
    Texts nodes = {node("F" + std::to_string(i - 1), {"x", "c"}, {inner}, {}, "my")};
    if (ifs) nodes = nested(nodes, "r", "y", ifs);
    functions.push_back(function("my", "F" + std::to_string(i), {"x", "c"}, {"y"}, nodes, {{"", 17}, {"my", 1}}));
  }
  return model_bytes({{"", 17}, {"my", 1}},
                     graph({node("F" + std::to_string(levels), {"x", "c"}, {"y"}, {}, "my")},
                           {kX[0], tensor_value("c", BP_DTYPE_BOOL, {})}, {value("y")}),
                     functions);
}

TEST(ImportDepth, SmallStacksSuffice) {
  on_small_stack([] {
    const int most = static_cast<int>(kDeepestGraph);
    EXPECT_EQ(text_of(read(deep_graphs(most))), "imported");
    EXPECT_THAT(text_of(read(deep_graphs(most + 1))), HasSubstr("nested deeper than"));
    EXPECT_THAT(text_of(read(deep_graphs(5000))), HasSubstr("nested deeper than"));
    EXPECT_EQ(text_of(read(deep_functions(60, 0))), "imported");
    EXPECT_EQ(text_of(read(deep_functions(most, 1))), "imported");
    EXPECT_THAT(text_of(read(deep_functions(most + 1, 1))), HasSubstr("nested deeper than"));
    EXPECT_EQ(text_of(read(deep_functions(2, most / 2))), "imported");
    EXPECT_THAT(text_of(read(deep_functions(60, most - 2))), HasSubstr("nested deeper than"));
    EXPECT_THAT(text_of(read(deep_functions(70, 0))), HasSubstr("deeper than"));
  });
}

}  // namespace
}  // namespace backplane::model
