// SPDX-License-Identifier: Apache-2.0
// Valid models are imported.
#include "import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "import/testing.h"
#include "ir/tensor.h"
#include "ops/schema/schema.h"

namespace backplane::model {
namespace {

using namespace import_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Import, ReadsOpsetsInputsAndSymbols) {
  const std::string bytes =
      model_bytes({{"ai.onnx", 17}, {"com.example", 3}},
                  graph({node("Relu", {"x"}, {"h"}), node("Mine", {"h"}, {"y"}, {}, "com.example")},
                        {tensor_value("x", kFloat, {"batch", 4})}, {tensor_value("y", kFloat, {"batch", "n"})}));
  auto result = read(bytes);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Model& m = **result;
  EXPECT_EQ(m.opsets.at(""), 17u);
  EXPECT_EQ(m.opsets.at("com.example"), 3u);
  ASSERT_EQ(m.graph.inputs.size(), 1u);
  const Type& x = m.graph.values[m.graph.inputs[0]].type;
  EXPECT_EQ(x.dtype, kFloat);
  EXPECT_EQ(m.graph.symbols[x.dims[0].symbol].name, "batch");
  EXPECT_EQ(x.dims[1].extent, 4);
  EXPECT_EQ(m.graph.nodes[0].since_version, ops::newest_schema("", "Relu")->since_version);
  EXPECT_EQ(m.graph.nodes[1].schema, nullptr);
  EXPECT_EQ(m.graph.nodes[1].since_version, 3u);
}

TEST(Import, BorrowsRawWeightsAndOwnsTypedOnes) {
  std::string typed = tensor_head("b", kFloat, {3});
  for (const float v : {1.f, 2.f, 3.f}) Writer(typed).add_float(field::tensor::kFloatData, v);
  const std::string bytes =
      model_bytes({{"", 17}}, graph({node("Add", {"x", "a"}, {"h"}), node("Add", {"h", "b"}, {"y"})},
                                    {tensor_value("x", kFloat, {3})}, {tensor_value("y", kFloat, {3})},
                                    {tensor("a", kFloat, {3}, std::vector<float>{4, 5, 6}), typed}));
  auto result = read(bytes);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Weight& a = g.weights[find_value(g, "a")->weight];
  EXPECT_GE(static_cast<const char*>(a.data), bytes.data());
  EXPECT_LT(static_cast<const char*>(a.data), bytes.data() + bytes.size());
  const Weight& b = g.weights[find_value(g, "b")->weight];
  EXPECT_TRUE(b.owned);
  EXPECT_THAT(*numbers(b), ElementsAre(1, 2, 3));
}

TEST(Import, PacksSmallTypesAndStrings) {
  std::string nibbles = tensor_head("w", BP_DTYPE_INT4, {3});
  for (const int v : {0x21, 0x03}) Writer(nibbles).add_int32(field::tensor::kInt32Data, v);
  std::string words = tensor_head("s", BP_DTYPE_STRING, {2});
  for (const char* v : {"ab", "c"}) Writer(words).add_string(field::tensor::kStringData, v);
  auto result = read(relu({}, {nibbles, words}));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Weight& w = g.weights[find_value(g, "w")->weight];
  EXPECT_EQ(std::string_view(static_cast<const char*>(w.data), w.bytes), std::string_view("\x21\x03"));
  const Weight& s = g.weights[find_value(g, "s")->weight];
  const std::array<int64_t, 3> offsets = {0, 2, 3};
  EXPECT_EQ(std::string_view(static_cast<const char*>(s.data), s.bytes),
            std::string(reinterpret_cast<const char*>(offsets.data()), sizeof offsets) + "abc");
}

TEST(Import, MakesSparseInitializersDense) {
  std::string sparse;
  Writer writer(sparse);
  writer.add_message(field::sparse::kValues, tensor("w", kFloat, {2}, std::vector<float>{7, 8}));
  writer.add_message(field::sparse::kIndices, tensor("", kInt64, {2}, std::vector<int64_t>{1, 3}));
  writer.add_int64(field::sparse::kDims, 2);
  writer.add_int64(field::sparse::kDims, 2);
  auto result = read(relu({}, {}, {{field::graph::kSparseInitializer, sparse}}));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(*numbers(g.weights[find_value(g, "w")->weight]), ElementsAre(0, 7, 0, 8));
}

TEST(Import, SortsNodesThatAreOutOfOrder) {
  auto result =
      read(model_bytes({{"", 17}}, graph({node("Neg", {"h"}, {"y"}), node("Relu", {"x"}, {"h"})},
                                         {tensor_value("x", kFloat, {2})}, {tensor_value("y", kFloat, {2})})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_THAT(operators((*result)->graph), ElementsAre("Relu", "Neg"));
  EXPECT_THAT((*result)->problems, ElementsAre(HasSubstr("topological order")));
}

TEST(Import, DropsNodesWithoutEffect) {
  auto result = read(model_bytes(
      {{"", 17}},
      graph({node("Identity", {"x"}, {"a"}), node("Dropout", {"a"}, {"b", "mask"}), node("Exp", {"a"}, {"dead"}),
             node("Relu", {"b"}, {"c"}), node("Identity", {"c"}, {"y"}), node("Identity", {"x"}, {"z"})},
            {tensor_value("x", kFloat, {2})}, {tensor_value("y", kFloat, {2}), tensor_value("z", kFloat, {2})})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(operators(g), ElementsAre("Relu", "Identity"));  // an input that is also an output keeps its Identity
  EXPECT_EQ(g.nodes[0].inputs[0], g.inputs[0]);
  EXPECT_EQ(g.values[g.nodes[0].outputs[0]].name, "y");
}

// The number of outputs matters for Split, If and Loop, so outputs that are not read, and may be unnamed, count too.
TEST(Import, UnnamedOutputsAtTheEndCount) {
  const Texts x{tensor_value("x", kFloat, {4}), tensor_value("c", BP_DTYPE_BOOL, {})};
  const std::string branch =
      graph({node("Relu", {"x"}, {"first"}), node("Neg", {"x"}, {"second"})}, {}, {value("first"), value("second")});
  const std::string body = graph({node("Identity", {"more"}, {"again"}), node("Relu", {"x"}, {"first"})},
                                 {tensor_value("i", kInt64, {}), tensor_value("more", BP_DTYPE_BOOL, {})},
                                 {value("again"), value("first"), value("i")});
  const std::pair<std::string, std::vector<int64_t>> cases[] = {
      {node("Split", {"x"}, {"y", ""}), {2}},
      {node("If", {"c"}, {"y", ""}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
       {4}},
      {node("Loop", {"", "c"}, {"y", ""}, {graph_attribute("body", body)}), {-1, 4}},
      {node("Loop", {"", ""}, {"y", ""}, {graph_attribute("body", body)}), {-1, 4}},
  };
  for (const auto& [node, extents] : cases) {
    auto result = read(model_bytes({{"", 13}}, graph({node}, x, {value("y")})));
    ASSERT_TRUE(result.ok()) << result.status().text();
    const Graph& g = (*result)->graph;
    std::vector<int64_t> found;
    for (const bp_dim_t& dim : g.values[g.outputs[0]].type.dims) found.push_back(dim.extent);
    EXPECT_EQ(found, extents) << g.nodes[0].op_type;
  }
}

// Devices may write every required output, so each needs a value.
TEST(Import, RequiredOutputsThatAreOmittedHaveValues) {
  auto result = read(model_bytes(
      {{"", 17}}, graph({node("Dropout", {"x"}, {"", "mask"}), node("DynamicQuantizeLinear", {"x"}, {"", "scale"}),
                         node("LayerNormalization", {"x", "x"}, {"", "", "deviation"})},
                        {tensor_value("x", kFloat, {2})}, {value("mask"), value("scale"), value("deviation")})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  ASSERT_THAT(operators(g), ElementsAre("Dropout", "DynamicQuantizeLinear", "LayerNormalization"));
  const std::vector<std::vector<bool>> present = {{true, true}, {true, true, true}, {true, false, true}};
  for (size_t n = 0; n < present.size(); ++n) {
    std::vector<bool> found;
    for (const model::ValueId output : g.nodes[n].outputs) found.push_back(output != BP_NONE);
    EXPECT_EQ(found, present[n]) << g.nodes[n].op_type;
    EXPECT_EQ(g.values[g.nodes[n].outputs[0]].type.rank, 1) << g.nodes[n].op_type;
  }
}

TEST(Import, TurnsConstantNodesIntoWeights) {
  auto result = read(
      relu({node("Constant", {}, {"k"}, {ints_attribute("value_ints", {2, -1})}), node("Reshape", {"y", "k"}, {"r"})},
           {}, {{field::graph::kOutput, value("r")}}));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(operators(g), ElementsAre("Relu", "Reshape"));
  EXPECT_THAT(*integers(*g.weight_of(g.nodes[1].inputs[1])), ElementsAre(2, -1));
}

TEST(Import, AttributesForToolsAreNoValuesOfConstants) {
  const auto constant = [](const Texts& attributes) {
    return read(relu({node("Constant", {}, {"k"}, attributes), node("Reshape", {"y", "k"}, {"r"})}, {},
                     {{field::graph::kOutput, value("r")}}));
  };
  const std::string number = ints_attribute("value_ints", {2, -1}), tool = int_attribute("__tool", 7);
  auto result = constant({tool, number});
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(*integers(*g.weight_of(g.nodes[1].inputs[1])), ElementsAre(2, -1));
  EXPECT_THAT(std::string(constant({tool}).status().text()), HasSubstr("0 are given"));
  EXPECT_THAT(std::string(constant({tool, number, int_attribute("value_int", 1)}).status().text()),
              HasSubstr("2 are given"));
}

TEST(Import, InlinesFunctionsWithTheirAttributes) {
  const std::string leaky =
      function("my", "Leaky", {"v"}, {"w"},
               {node("LeakyRelu", {"v"}, {"t"}, {reference_attribute("alpha", BP_ATTR_FLOAT, "slope")}),
                node("Relu", {"t"}, {"w"})},
               {{"", 16}}, {}, {float_attribute("slope", 0.5f)});
  const std::string twice = function(
      "my", "Twice", {"v"}, {"w"},
      {node("Leaky", {"v"}, {"t"}, {}, "my"), node("Leaky", {"t"}, {"w"}, {float_attribute("slope", 0.25f)}, "my")},
      {{"my", 1}});
  auto result = read(model_bytes({{"", 17}, {"my", 1}},
                                 graph({node("Twice", {"x"}, {"y"}, {}, "my", "call")},
                                       {tensor_value("x", kFloat, {2})}, {tensor_value("y", kFloat, {2})}),
                                 {leaky, twice}));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  ASSERT_THAT(operators(g), ElementsAre("LeakyRelu", "Relu", "LeakyRelu", "Relu"));
  EXPECT_EQ(g.nodes[0].attr("alpha", 0.f), 0.5f);
  EXPECT_EQ(g.nodes[2].attr("alpha", 0.f), 0.25f);
  EXPECT_EQ(g.nodes[2].inputs[0], g.nodes[1].outputs[0]);
  EXPECT_THAT(g.nodes[0].name, HasSubstr("call"));
}

TEST(Import, SubgraphsSeeOuterValues) {
  const std::string then_body = graph({node("Add", {"x", "h"}, {"t"})}, {}, {value("t")});
  const std::string else_body = graph({node("Identity", {"h"}, {"e"})}, {}, {value("e")});
  auto result = read(model_bytes(
      {{"", 17}},
      graph({node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", then_body), graph_attribute("else_branch", else_body)}),
             node("Relu", {"x"}, {"h"})},  // in the file, this node follows the If that reads its output
            {tensor_value("x", kFloat, {2}), tensor_value("c", BP_DTYPE_BOOL, {})}, {tensor_value("y", kFloat, {2})})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  ASSERT_THAT(operators(g), ElementsAre("Relu", "If"));
  const Graph& body = *g.subgraphs[g.nodes[1].find("then_branch")->indices()[0]];
  EXPECT_EQ(body.values[body.nodes[0].inputs[1]].outer, g.nodes[0].outputs[0]);
}

// A body's inputs hide outer values with the same names. The body can still read other outer values.
TEST(Import, SubgraphInputsHideOuterNames) {
  const std::string body = graph(
      {node("Add", {"x", "w"}, {"sum"}), node("Identity", {"n"}, {"more"})},
      {tensor_value("i", BP_DTYPE_INT64, {}), tensor_value("n", BP_DTYPE_BOOL, {}), tensor_value("x", kFloat, {3})},
      {value("more"), value("sum")});
  auto result = read(model_bytes(
      {{"", 17}},
      graph({node("Loop", {"n", "c", "w"}, {"y"}, {graph_attribute("body", body)}), node("Neg", {"x"}, {"z"})},
            {tensor_value("x", kFloat, {2}), tensor_value("n", BP_DTYPE_INT64, {}),
             tensor_value("c", BP_DTYPE_BOOL, {}), tensor_value("w", kFloat, {3})},
            {value("y"), tensor_value("z", kFloat, {2})})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const auto loop = std::find_if(g.nodes.begin(), g.nodes.end(), [](const auto& n) { return n.op_type == "Loop"; });
  ASSERT_NE(loop, g.nodes.end());
  const Graph& inner = *g.subgraphs[loop->find("body")->indices()[0]];
  ASSERT_EQ(inner.inputs.size(), 3u);
  for (const ValueId input : inner.inputs) EXPECT_EQ(inner.values[input].outer, BP_NONE);
  const auto add =
      std::find_if(inner.nodes.begin(), inner.nodes.end(), [](const auto& n) { return n.op_type == "Add"; });
  ASSERT_NE(add, inner.nodes.end());
  EXPECT_EQ(add->inputs[0], inner.inputs[2]);
  EXPECT_EQ(inner.values[add->inputs[1]].outer, g.inputs[3]);
  EXPECT_EQ(g.values[g.outputs[1]].type.dims[0].extent, 2);
  EXPECT_EQ(inner.values[inner.outputs[1]].type.dims[0].extent, 3);
}

// A value that a loop carries unchanged is read from outside, where it may be a constant; one that changes is not.
TEST(Import, LoopsReadWhatTheyCarryUnchangedFromOutside) {
  const std::string inner = graph({node("Neg", {"w"}, {"r"})}, {}, {value("r")});
  const std::string body =
      graph({node("Mul", {"x", "w"}, {"p"}),
             node("If", {"n"}, {"t"}, {graph_attribute("then_branch", inner), graph_attribute("else_branch", inner)}),
             node("Add", {"p", "t"}, {"sum"})},
            {tensor_value("i", BP_DTYPE_INT64, {}), tensor_value("n", BP_DTYPE_BOOL, {}),
             tensor_value("x", kFloat, {2}), tensor_value("w", kFloat, {2})},
            {value("n"), value("sum"), value("w")});
  auto result = read(model_bytes(
      {{"", 17}},
      graph({node("Neg", {"v"}, {"outer"}),
             node("Loop", {"", "c", "v", "outer"}, {"y", "z"}, {graph_attribute("body", body)})},
            {tensor_value("c", BP_DTYPE_BOOL, {}), tensor_value("v", kFloat, {2})}, {value("y"), value("z")})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Graph& loop = *g.subgraphs[g.nodes[1].find("body")->indices()[0]];
  ASSERT_THAT(operators(loop), ElementsAre("Mul", "If", "Add"));
  EXPECT_EQ(loop.nodes[0].inputs[0], loop.inputs[2]);
  const ValueId shared = loop.nodes[0].inputs[1];
  EXPECT_EQ(loop.values[shared].outer, g.nodes[0].outputs[0]);
  const Graph& branch = *loop.subgraphs[loop.nodes[1].find("then_branch")->indices()[0]];
  EXPECT_EQ(branch.values[branch.nodes[0].inputs[0]].outer, shared);
  EXPECT_EQ(loop.outputs[2], loop.inputs[3]);
}

// A branch that is taken in every run becomes a part of the enclosing graph, also if its If is inside a branch of
// another If or inside a Loop.
TEST(Import, KnownConditionsSelectTheirBranch) {
  const auto branches = [](const std::string& yes, const std::string& no) {
    return Texts{graph_attribute("then_branch", yes), graph_attribute("else_branch", no)};
  };
  const std::string dead = graph({node("Exp", {"x"}, {"t"})}, {}, {value("t")});
  // Reads outer values and its own constant; one result is a constant, one an outer value, and two are the same.
  const std::string inner =
      graph({node("Mul", {"h", "two"}, {"t"})}, {}, {value("t"), value("two"), value("x"), value("t")},
            {tensor("two", kFloat, {2}, std::vector<float>{2, 2})});
  const std::string body = graph(
      {node("Sub", {"v", "h"}, {"t"}),
       node("If", {"no"}, {"u"}, branches(dead, graph({node("Neg", {"t"}, {"e"})}, {}, {value("e")})))},
      {tensor_value("i", BP_DTYPE_INT64, {}), tensor_value("n", BP_DTYPE_BOOL, {}), tensor_value("v", kFloat, {2})},
      {value("n"), value("u")});
  const std::string taken =
      graph({node("Abs", {"x"}, {"h"}), node("If", {"yes"}, {"a", "b", "c", "d"}, branches(inner, inner)),
             node("Loop", {"", "run", "a"}, {"t"}, {graph_attribute("body", body)}),
             node("Sum", {"b", "c", "d", "t"}, {"s"})},
            {}, {value("s")}, {tensor("yes", BP_DTYPE_BOOL, {1}, std::vector<char>{1})});
  const std::string bytes = model_bytes(
      {{"", 17}},
      graph({node("If", {"no"}, {"y"}, branches(dead, taken)), node("If", {"run"}, {"z"}, branches(dead, dead))},
            {tensor_value("x", kFloat, {2}), tensor_value("run", BP_DTYPE_BOOL, {})}, {value("y"), value("z")},
            {tensor("no", BP_DTYPE_BOOL, {}, std::vector<char>{0})}));
  auto result = read(bytes);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  ASSERT_THAT(operators(g), ElementsAre("Abs", "Mul", "Loop", "Sum", "If"));
  const Node &abs = g.nodes[0], &mul = g.nodes[1], &loop = g.nodes[2], &sum = g.nodes[3];
  EXPECT_EQ(abs.inputs[0], g.inputs[0]);
  EXPECT_EQ(mul.inputs[0], abs.outputs[0]);
  EXPECT_THAT(*numbers(*g.weight_of(mul.inputs[1])), ElementsAre(2, 2));
  EXPECT_EQ(loop.inputs[2], mul.outputs[0]);
  EXPECT_THAT(sum.inputs, ElementsAre(mul.inputs[1], g.inputs[0], mul.outputs[0], loop.outputs[0]));
  EXPECT_EQ(sum.outputs[0], g.outputs[0]);
  ASSERT_EQ(g.subgraphs.size(), 3u);  // the body of the Loop and the branches of the last If
  const Graph& looped = *g.subgraphs[loop.find("body")->indices()[0]];
  EXPECT_EQ(looped.parent, &g);
  ASSERT_THAT(operators(looped), ElementsAre("Sub", "Neg"));
  EXPECT_EQ(looped.values[looped.nodes[0].inputs[1]].outer, abs.outputs[0]);
  EXPECT_EQ(looped.nodes[1].inputs[0], looped.nodes[0].outputs[0]);
  EXPECT_EQ(looped.outputs[1], looped.nodes[1].outputs[0]);
}

// A function call and a node of its body share what their attributes refer to, also when both move to another graph.
TEST(Import, CallsInASelectedBranchKeepTheirTypes) {
  const std::string empty =
      function("my", "Empty", {}, {"w"},
               {node("Optional", {}, {"w"}, {reference_attribute("type", BP_ATTR_TYPE, "of")})}, {{"", 17}}, {"of"});
  const std::string taken = graph({node("Empty", {}, {"o"}, {type_attribute("of", tensor_type(kFloat, {2, 3}))}, "my"),
                                   node("OptionalHasElement", {"o"}, {"t"})},
                                  {}, {value("t")});
  const std::string dead = graph({node("OptionalHasElement", {"x"}, {"t"})}, {}, {value("t")});
  auto result = read(model_bytes(
      {{"", 18}, {"my", 1}},
      graph({node("If", {"yes"}, {"y"}, {graph_attribute("then_branch", taken), graph_attribute("else_branch", dead)})},
            {tensor_value("x", kFloat, {2})}, {tensor_value("y", BP_DTYPE_BOOL, {})},
            {tensor("yes", BP_DTYPE_BOOL, {}, std::vector<char>{1})}),
      {empty}));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  ASSERT_THAT(operators(g), ElementsAre("Optional", "OptionalHasElement"));
  ASSERT_EQ(g.calls.size(), 1u);
  for (const Attribute* attribute : {g.nodes[0].find("type"), g.calls[0].node.find("of")}) {
    const Type& type = g.attribute_types[attribute->indices()[0]];
    ASSERT_EQ(type.dims.size(), 2u) << attribute->name;
    EXPECT_EQ(type.dims[1].extent, 3);
  }
}

// Some exporters pass an initial value of another shape, which the first iteration replaces without reading it.
TEST(Import, TheInitialValueOfALoopMayHaveAnotherShape) {
  const std::string body = graph(
      {node("Neg", {"x"}, {"next"})},
      {tensor_value("i", BP_DTYPE_INT64, {}), tensor_value("n", BP_DTYPE_BOOL, {}), tensor_value("v", kFloat, {2, 3})},
      {value("n"), value("next")});
  auto result = read(model_bytes(
      {{"", 17}},
      graph({node("Loop", {"", "c", "v"}, {"y"}, {graph_attribute("body", body)})},
            {tensor_value("c", BP_DTYPE_BOOL, {}), tensor_value("v", kFloat, {1}), tensor_value("x", kFloat, {2, 3})},
            {value("y")})));
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Graph& loop = *g.subgraphs[g.nodes[0].find("body")->indices()[0]];
  EXPECT_EQ(loop.values[loop.inputs[2]].type.rank, -1);
}

// After all passes, a call refers to the nodes of its body that remain, or to no nodes.
TEST(Import, ACallHasTheNodeCountOfItsOptimizedBody) {
  struct Case {
    const char* what;
    Texts inputs, outputs, body;
    uint32_t count;
    std::vector<bool> made;  // by output of the call: whether the call still lists it
  };
  const Case cases[] = {
      {"all of it", {"a", "b"}, {"y", "z"}, {node("Neg", {"a"}, {"y"}), node("Abs", {"b"}, {"z"})}, 2, {true, true}},
      {"nothing", {"a", "b"}, {"y", "z"}, {node("Identity", {"a"}, {"y"}), node("Identity", {"b"}, {"z"})}, 0, {}},
      {"one value for two outputs",
       {"a", "b"},
       {"y", "z"},
       {node("Sub", {"a", "b"}, {"y"}), node("Identity", {"y"}, {"z"})},
       1,
       {true, false}},
      {"an output that is an input",
       {"a", "b"},
       {"y", "z"},
       {node("Sub", {"a", "b"}, {"y"}), node("Identity", {"a"}, {"z"})},
       1,
       {true, false}},
      {"an input of which the shape alone was wanted, so that no node computes it any more",
       {"a", "b"},
       {"y", "z"},
       {node("Neg", {"a"}, {"y"}), node("Shape", {"b"}, {"s"}), node("Reshape", {"a", "s"}, {"z"})},
       0,
       {}},
  };
  for (const Case& c : cases) {
    const Texts nodes = {node("Neg", {"x"}, {"n"}), node("F", {"x", "n"}, {"y", "z"}, {}, "my", "call"),
                         node("Add", {"y", "z"}, {"u"}), node("Identity", {"u"}, {"v"})};
    auto result = read(model_bytes({{"", 17}, {"my", 1}}, graph(nodes, {tensor_value("x", kFloat, {2})}, {value("v")}),
                                   {function("my", "F", c.inputs, c.outputs, c.body, {{"", 17}})}));
    ASSERT_TRUE(result.ok()) << c.what << ": " << result.status().text();
    const Graph& g = (*result)->graph;
    ASSERT_EQ(g.calls.size(), 1u);
    const Call& call = g.calls[0];
    EXPECT_EQ(call.count, c.count) << c.what;
    if (c.count == 0) continue;
    EXPECT_EQ(g.nodes[call.first].call, 0u);
    EXPECT_EQ(call.node.label(), "node 'call' (my.F)");
    for (size_t slot = 0; slot < c.made.size(); ++slot)
      EXPECT_EQ(call.node.outputs[slot] != BP_NONE, c.made[slot]) << c.what << ", output " << slot;
  }
}

}  // namespace
}  // namespace backplane::model
