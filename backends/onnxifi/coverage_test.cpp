// SPDX-License-Identifier: Apache-2.0
// What the backend covers of a library: refusals with a reason, and older forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "testing/library_fixture.h"

namespace onnxifi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Refused {
  const char* name;
  uint32_t reason;
  const char* text;
  std::function<Model()> model;
};

class Refusal : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusal, HasTheReason) {
  const Environment env = vendor("plain");
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  how.flags = BP_SESSION_PLACE_ONLY;
  const Model model = GetParam().model();
  const Session session = env.compile(model, how);
  const bp_node_verdict_t verdict = verdict_of(session, env);
  EXPECT_EQ(verdict.answer, BP_ANSWER_NO);
  EXPECT_EQ(verdict.reason, GetParam().reason);
  EXPECT_THAT(std::string(view::text(verdict.detail)), HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Onnxifi, Refusal,
    ::testing::Values(
        Refused{"operator", BP_REASON_OPERATOR, "UNSUPPORTED_OPERATOR", [] { return one("Neg", BP_DTYPE_FLOAT, {2}); }},
        Refused{"dtype", BP_REASON_DTYPE, "UNSUPPORTED_DATATYPE", [] { return one("Relu", BP_DTYPE_INT32, {2}); }},
        Refused{"shape", BP_REASON_SHAPE, "UNSUPPORTED_SHAPE",
                [] {
                  return one("Relu", BP_DTYPE_FLOAT, {1, 1, 1, 1, 2});
                }},
        Refused{"attribute", BP_REASON_ATTRIBUTE, "UNSUPPORTED_ATTRIBUTE",
                [] {
                  return one("ReduceSum", BP_DTYPE_FLOAT, {2, 3}, {}, {{"keepdims", 0}});
                }},
        Refused{"opset", BP_REASON_OPSET, "Gelu in version 20 is newer",
                [] { return one("Gelu", BP_DTYPE_FLOAT, {2}); }},
        Refused{"older", BP_REASON_OPSET, "which works on all dimensions from its axis on",
                [] {
                  return one("Softmax", BP_DTYPE_FLOAT, {2, 3}, {}, {{"axis", 0}});
                }},
        Refused{"symbol", BP_REASON_SHAPE, "not known before the run",
                [] { return one("Relu", BP_DTYPE_FLOAT, {-1}, {"n"}); }},
        Refused{"boolean", BP_REASON_DTYPE, "bool, which ONNXIFI does not have",
                [] { return one("Not", BP_DTYPE_BOOL, {2}); }},
        Refused{"empty", BP_REASON_SHAPE, "has no elements", [] { return one("Relu", BP_DTYPE_FLOAT, {0}); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OnnxifiCoverage, OlderFormsAreWritten) {
  const Environment env = vendor("plain");  // reads opset 8, in which axes are attributes
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 3});
  const uint32_t last = graph.weight("last", Tensor::of<int64_t>({1}, {-1}));
  const uint32_t sum = graph.node("ReduceSum", "sum", {x, last});
  const uint32_t column = graph.node("Squeeze", "column", {sum, last});
  const Model model = graph.finish({graph.node("Unsqueeze", "wide", {column, last})});
  Exec exec = env.compile(model, on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  exec.run();
  EXPECT_THAT(exec.output(0).extents(), ElementsAre(2, 1));
  EXPECT_THAT(values(exec.output(0)), ElementsAre(6, 15));
}

// The test library `strict` reads -1 as outside the tensor.
TEST(OnnxifiCoverage, ConstantIndicesCountFromTheStart) {
  const Environment env = vendor("strict");
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4, 2});
  const uint32_t indices = graph.weight("indices", Tensor::of<int64_t>({3}, {-1, 0, -4}));
  const uint32_t rows = graph.weight("rows", Tensor::of<int64_t>({1, 2}, {-1, -3}));
  const uint32_t labels = graph.weight("labels", Tensor::of<int64_t>({3}, {-1, 5, -5}));
  const uint32_t updates = graph.weight("updates", Tensor::of<float>({1, 2}, {70, 80}));
  const uint32_t depth = graph.weight("depth", Tensor::of<int64_t>({1}, {4}));
  const uint32_t off_on = graph.input("off_on", BP_DTYPE_FLOAT, {2});
  const uint32_t gathered = graph.node("Gather", "gathered", {x, indices}, {{"axis", 0}});
  const uint32_t scattered = graph.node("ScatterElements", "scattered", {x, rows, updates}, {{"axis", -2}});
  const Model model = graph.finish({gathered, scattered, graph.node("OneHot", "hot", {labels, depth, off_on})});
  Exec exec = env.compile(model, on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  exec.bind(1, Tensor::of<float>({2}, {0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(7, 8, 1, 2, 1, 2));
  EXPECT_THAT(values(exec.output(1)), ElementsAre(1, 2, 3, 80, 5, 6, 70, 8));
  EXPECT_THAT(values(exec.output(2)), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(OnnxifiCoverage, ComputedIndicesAreRefusedWhereNegativeOnesAreUnknown) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4}), at = graph.input("at", BP_DTYPE_INT64, {2});
  const Model model = graph.finish({graph.node("Gather", "y", {x, at}, {{"axis", 0}})});
  const Environment env = vendor("strict");
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  const Session session = env.compile(model, how);
  const bp_node_verdict_t verdict = verdict_of(session, env);
  EXPECT_EQ(verdict.reason, BP_REASON_OPSET);
  EXPECT_THAT(std::string(view::text(verdict.detail)), HasSubstr("which has no negative indices"));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({4}, {1, 2, 3, 4}));
  exec.bind(1, Tensor::of<int64_t>({2}, {-1, 0}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(4, 1));
}

}  // namespace
}  // namespace onnxifi_test
