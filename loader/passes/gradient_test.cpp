// SPDX-License-Identifier: Apache-2.0
// Checks which nodes replace a Gradient. The harness's conformance cases check the numbers.
#include "passes/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import.h"
#include "testing/onnx_writer.h"

namespace backplane::model {
namespace {

using namespace testing::onnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT;
constexpr const char* kTraining = "ai.onnx.preview.training";

std::string strings_attribute(std::string_view name, const Texts& values) {
  return attribute(name, BP_ATTR_STRINGS, [&](Writer& w) {
    for (const std::string& one : values) w.add_string(field::attribute::kStrings, one);
  });
}

std::string gradient(const Texts& given, const Texts& xs, const std::string& y, const Texts& outputs) {
  return node("Gradient", given, outputs, {strings_attribute("xs", xs), string_attribute("y", y)}, kTraining, "grad");
}

// Inputs a [2, 3], b [3] and n [N]; constant w [3]; output d.
Result<std::shared_ptr<Model>> read(const Texts& nodes) {
  const std::string bytes = model_bytes(
      {{"", 17}, {kTraining, 1}},
      graph(nodes,
            {tensor_value("a", kFloat, {2, 3}), tensor_value("b", kFloat, {3}), tensor_value("n", kFloat, {"N"})},
            {value("d")}, {tensor("w", kFloat, {3}, std::vector<float>{4, 5, 6})}));
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  return import(source);
}

std::vector<std::string> operators(const Result<std::shared_ptr<Model>>& model) {
  std::vector<std::string> names;
  for (const Node& node : (*model)->graph.nodes) names.push_back(node.op_type);
  return names;
}

std::vector<int64_t> extents(const Result<std::shared_ptr<Model>>& model) {
  const Graph& graph = (*model)->graph;
  std::vector<int64_t> found;
  for (const bp_dim_t& dim : graph.values[graph.outputs[0]].type.dims) found.push_back(dim.extent);
  return found;
}

TEST(Gradient, SumsOverWhatWasBroadcast) {
  auto model = read({node("Mul", {"a", "b"}, {"y"}), gradient({"a", "b"}, {"a", "b"}, "y", {"", "d"})});
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_THAT(operators(model), ElementsAre("Mul", "ReduceSum"));
  EXPECT_THAT(extents(model), ElementsAre(3));
}

TEST(Gradient, FollowsConstants) {
  auto model = read({node("Mul", {"w", "w"}, {"y"}), gradient({"w"}, {"w"}, "y", {"d"})});
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_THAT(
      operators(model),
      ElementsAre("Mul", "Mul", "Add"));  // the gradient is 1 · w + 1 · w; if w · w had been folded, it would be zeros
}

TEST(Gradient, IsRecomputedWithNewTensors) {
  auto model = read({node("Exp", {"b"}, {"y"}), gradient({"w"}, {"b"}, "y", {"d"})});
  ASSERT_TRUE(model.ok()) << model.status().text();
  const Graph& graph = (*model)->graph;
  const auto exp = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](auto& n) { return n.op_type == "Exp"; });
  ASSERT_NE(exp, graph.nodes.end());
  EXPECT_EQ(graph.values[exp->inputs[0]].name, "w");
}

TEST(Gradient, HasGradientsItself) {
  auto model = read(
      {gradient({"b"}, {"b"}, "first", {"d"}), node("Tanh", {"b"}, {"y"}), gradient({"b"}, {"b"}, "y", {"first"})});
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_THAT(operators(model), ::testing::Not(::testing::Contains("Gradient")));
  EXPECT_THAT(extents(model), ElementsAre(3));
}

TEST(Gradient, TransposesBack) {
  auto model =
      read({node("Transpose", {"a"}, {"y"}, {ints_attribute("perm", {-1, 0})}), gradient({"a"}, {"a"}, "y", {"d"})});
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_THAT(extents(model), ElementsAre(2, 3));
}

// The number of elements would be infinite in fp16.
TEST(Gradient, OfAMeanOf16BitFloatsCountsInFp32) {
  const std::string bytes = model_bytes({{"", 18}, {kTraining, 1}},
                                        graph({node("ReduceMean", {"x"}, {"y"}), gradient({"x"}, {"x"}, "y", {"d"})},
                                              {tensor_value("x", BP_DTYPE_FLOAT16, {"N"})}, {value("d")}));
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  auto model = import(source);
  ASSERT_TRUE(model.ok()) << model.status().text();
  const Graph& all = (*model)->graph;
  EXPECT_THAT(operators(model), ::testing::Contains("Div").Times(2));
  for (const Node& each : all.nodes) {
    if (each.op_type != "Div") continue;
    EXPECT_EQ(all.values[each.outputs[0]].type.dtype, BP_DTYPE_FLOAT);
  }
  EXPECT_EQ(all.values[all.outputs[0]].type.dtype, BP_DTYPE_FLOAT16);
}

struct Wrong {
  Texts nodes;
  bp_status_t code;
  const char* text;
};

TEST(Gradient, ReportsUnsupportedOperators) {
  const Wrong cases[] = {
      {{gradient({"a"}, {"a"}, "nothing", {"d"})}, BP_INVALID_MODEL, "names 'nothing', which is not a value"},
      {{gradient({"a", "b"}, {"a"}, "a", {"d"})}, BP_INVALID_MODEL, "has 2 inputs, but xs and zs name 1 tensor"},
      {{gradient({"a"}, {"a"}, "y", {"d"}), node("Exp", {"d"}, {"y"})}, BP_INVALID_MODEL, "cycle"},
      {{node("Selu", {"a"}, {"y"}, {}, "", "act"), gradient({"a"}, {"a"}, "y", {"d"})}, BP_UNSUPPORTED, "'act' (Selu)"},
      {{node("Add", {"n", "b"}, {"y"}), gradient({"n"}, {"n"}, "y", {"d"})}, BP_UNSUPPORTED, "declare the shapes"},
      {{node("Squeeze", {"n"}, {"s"}),
        node("Transpose", {"s"}, {"y"}, {ints_attribute("perm", {900})}),  // unknown rank
        gradient({"n"}, {"n"}, "y", {"d"})},
       BP_UNSUPPORTED,
       "not a permutation"},
  };
  for (const Wrong& wrong : cases) {
    const auto model = read(wrong.nodes);
    ASSERT_FALSE(model.ok()) << wrong.text;
    EXPECT_EQ(model.status().code(), wrong.code) << model.status().text();
    EXPECT_THAT(std::string(model.status().text()), HasSubstr(wrong.text));
  }
}

}  // namespace
}  // namespace backplane::model
