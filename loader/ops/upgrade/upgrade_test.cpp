// SPDX-License-Identifier: Apache-2.0
// Checks that the table covers every change of an operator, and that upgrades produce the right nodes.
#include "ops/upgrade/upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfloat>

#include "import/import.h"
#include "ir/tensor.h"
#include "testing/onnx_writer.h"

namespace backplane::ops {
namespace {

using namespace testing::onnx;
using model::Graph;
using model::Model;
using model::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT, kInt64 = BP_DTYPE_INT64;

// The model refers to `bytes`.
Result<std::shared_ptr<Model>> import_of(const std::string& bytes) {
  model::Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  return model::import(source);
}

std::string form(const Schema& schema) {
  return std::string(schema.domain) + "." + std::string(schema.name) + "-" + std::to_string(schema.since_version);
}

// Whether two forms differ in more than types: in inputs, outputs, attributes or a default.
bool differs(const Schema& a, const Schema& b) {
  const auto same_formal = [](const Formal& x, const Formal& y) { return x.name == y.name && x.option == y.option; };
  const auto same_rule = [](const AttributeRule& x, const AttributeRule& y) {
    return x.name == y.name && x.type == y.type && x.required == y.required && x.has_default == y.has_default &&
           x.fallback.data == y.fallback.data;
  };
  return a.deprecated != b.deprecated ||
         !std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_formal) ||
         !std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), same_formal) ||
         !std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(), same_rule);
}

// If a newer form allowed fewer types, some older models would be refused after their upgrade.
TEST(Upgrade, NoFormAllowsFewerTypesThanTheOneBefore) {
  std::vector<std::string> narrowed;
  for (const Schema& schema : all_schemas()) {
    if (!schema.older || schema.deprecated || find_upgrade(schema)) continue;
    for (size_t i = 0; i < std::min(schema.inputs.size(), schema.older->inputs.size()); ++i) {
      const Formal &now = schema.inputs[i], &before = schema.older->inputs[i];
      if ((before.dtypes & ~now.dtypes) != 0 || (before.kinds & ~now.kinds) != 0)
        narrowed.push_back(form(schema) + " " + std::string(now.name));
    }
  }
  // Erf 9 allowed integers, but no device computes the error function of integers.
  EXPECT_THAT(narrowed, ElementsAre(".Erf-13 input"));
}

TEST(Upgrade, EveryChangeHasAnEntry) {
  std::vector<std::string> missing;
  for (const Schema& schema : all_schemas()) {
    if (!schema.older || !differs(*schema.older, schema) || find_upgrade(schema)) continue;
    if (schema.deprecated) continue;  // the previous form is the last usable one
    missing.push_back(form(schema));
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Upgrade, EveryEntryIsAChange) {
  const Upgrade* before = nullptr;
  for (const Upgrade& entry : all_upgrades()) {
    SCOPED_TRACE(std::string(entry.op) + "-" + std::to_string(entry.to_version));
    const Schema* to = find_schema(entry.domain, entry.op, entry.to_version);
    ASSERT_NE(to, nullptr);
    EXPECT_EQ(to->since_version, entry.to_version);
    EXPECT_NE(to->older, nullptr);
    if (before) {
      EXPECT_LT(std::tie(before->domain, before->op, before->to_version),
                std::tie(entry.domain, entry.op, entry.to_version));
    }
    before = &entry;
  }
}

// A model with one node, after its upgrade. Keeps the model's bytes, which the graph refers to.
struct Upgraded {
  std::string bytes;
  std::shared_ptr<Model> model;
  Status status;

  const Graph& graph() const { return model->graph; }
  const Node& last() const { return model->graph.nodes.back(); }
  std::vector<std::string> operators() const {
    std::vector<std::string> names;
    for (const Node& node : graph().nodes) names.push_back(node.op_type);
    return names;
  }
  std::vector<int64_t> ints(size_t node, size_t slot) const {
    const model::Weight* weight = graph().weight_of(graph().nodes[node].input(slot));
    return weight ? model::integers(*weight).value_or(std::vector<int64_t>()) : std::vector<int64_t>();
  }
  std::vector<double> numbers(size_t node, size_t slot) const {
    const model::Weight* weight = graph().weight_of(graph().nodes[node].input(slot));
    return weight ? model::numbers(*weight).value_or(std::vector<double>()) : std::vector<double>();
  }
};

Upgraded run(int64_t opset, std::string_view op, const std::vector<std::vector<Dim>>& shapes,
             const Texts& attributes = {}, size_t outputs = 1, const Texts& weights = {},
             const Texts& weight_names = {}) {
  Texts inputs, names, ends, output_names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    inputs.push_back(tensor_value(names.back(), kFloat, shapes[i]));
  }
  for (const std::string& name : weight_names) names.push_back(name);
  for (size_t i = 0; i < outputs; ++i) {
    output_names.push_back("y" + std::to_string(i));
    ends.push_back(value(output_names.back()));
  }
  Upgraded result;
  result.bytes = model_bytes(
      {{"", opset}, {"ai.onnx.ml", 1}},
      testing::onnx::graph({node(op, names, output_names, attributes, op == "LabelEncoder" ? "ai.onnx.ml" : "", "n")},
                           inputs, ends, weights));
  auto imported = import_of(result.bytes);
  if (imported.ok()) {
    result.model = imported.take();
  } else {
    result.status = imported.take_status();
  }
  return result;
}

#define EXPECT_IMPORTED(u) ASSERT_TRUE((u).model) << (u).status.text()

TEST(Upgrade, AxesBecomeAnInput) {
  for (const char* op : {"Squeeze", "ReduceSum", "ReduceMean", "ReduceL2"}) {
    SCOPED_TRACE(op);
    const Upgraded u = run(11, op, {{1, 3, 4}}, {ints_attribute("axes", {0})});
    EXPECT_IMPORTED(u);
    EXPECT_THAT(u.operators(), ElementsAre(op));
    EXPECT_THAT(u.ints(0, 1), ElementsAre(0));
    EXPECT_EQ(u.last().find("axes"), nullptr);
    EXPECT_EQ(u.last().since_version, newest_schema("", op)->since_version);
  }
}

TEST(Upgrade, SliceAndTopKAndPadTakeInputs) {
  Upgraded u = run(9, "Slice", {{4, 5}},
                   {ints_attribute("starts", {1}), ints_attribute("ends", {3}), ints_attribute("axes", {1})});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.ints(0, 1), ElementsAre(1));
  EXPECT_THAT(u.ints(0, 2), ElementsAre(3));
  EXPECT_THAT(u.ints(0, 3), ElementsAre(1));
  u = run(9, "TopK", {{4, 5}}, {int_attribute("k", 2)}, 2);
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.ints(0, 1), ElementsAre(2));
  EXPECT_EQ(u.last().attr("largest", int64_t{0}), 1);
  u = run(1, "Pad", {{4, 5}}, {ints_attribute("paddings", {0, 1, 0, 1}), float_attribute("value", 2)});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.ints(0, 1), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(u.numbers(0, 2), ElementsAre(2));
}

TEST(Upgrade, ClipKeepsOnlyRealBounds) {
  Upgraded u = run(6, "Clip", {{2}}, {float_attribute("min", 0), float_attribute("max", FLT_MAX)});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.numbers(0, 1), ElementsAre(0));
  EXPECT_EQ(u.last().inputs.size(), 2u);
}

// Clip-6 is defined for floating-point types only, but some models clip integers with it. A bound that C++ cannot
// convert to the type is converted by the device.
TEST(Upgrade, ClipCastsBoundsBeyondIntegers) {
  const std::string bytes = model_bytes(
      {{"", 6}},
      testing::onnx::graph({node("Clip", {"x"}, {"y"}, {float_attribute("min", -1), float_attribute("max", 1e20f)})},
                           {tensor_value("x", kInt64, {2})}, {value("y")}));
  auto imported = import_of(bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  const Graph& g = (*imported)->graph;
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.nodes[0].op_type, "CastLike");
  EXPECT_EQ(g.nodes[0].outputs[0], g.nodes[1].inputs[2]);
  EXPECT_THAT(model::integers(*g.weight_of(g.nodes[1].inputs[1])).value(), ElementsAre(-1));
}

TEST(Upgrade, SplitCountsItsOutputs) {
  Upgraded u = run(11, "Split", {{4, 6}}, {int_attribute("axis", 1)}, 3);
  EXPECT_IMPORTED(u);
  EXPECT_EQ(u.last().attr("num_outputs", int64_t{0}), 3);
  u = run(2, "Split", {{4, 6}}, {int_attribute("axis", 1), ints_attribute("split", {2, 4})}, 2);
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.ints(0, 1), ElementsAre(2, 4));
  EXPECT_EQ(u.last().find("num_outputs"), nullptr);
}

TEST(Upgrade, SoftmaxFlattensUnlessTheLastAxisIsMeant) {
  Upgraded u = run(11, "Softmax", {{2, 3}});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.operators(), ElementsAre("Softmax"));
  EXPECT_EQ(u.last().attr("axis", int64_t{0}), -1);
  u = run(11, "Softmax", {{2, 3, "n"}});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.operators(), ::testing::IsSupersetOf({"Flatten", "Softmax", "Reshape"}));
  const model::Type& type = u.graph().values[u.graph().outputs[0]].type;
  ASSERT_EQ(type.rank, 3);
  EXPECT_EQ(type.dims[1].extent, 3);
}

TEST(Upgrade, OldBroadcastAlignsByAxis) {
  Upgraded u = run(6, "Add", {{2, 3, 4, 5}, {3, 4}}, {int_attribute("broadcast", 1), int_attribute("axis", 1)});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.operators(), ElementsAre("Unsqueeze", "Add"));
  EXPECT_THAT(u.ints(0, 1), ElementsAre(2));
  u = run(6, "PRelu", {{2, 3, 4, 5}}, {}, 1, {tensor("slope", kFloat, {3}, std::vector<float>{1, 2, 3})}, {"slope"});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.graph().weight_of(u.last().inputs[1])->dims, ElementsAre(3, 1, 1));
  for (const int64_t axis : {int64_t{-100}, int64_t{100}, INT64_MIN}) {
    u = run(6, "Add", {{2, 3}}, {int_attribute("broadcast", 1), int_attribute("axis", axis)}, 1,
            {tensor("w", kFloat, {1}, std::vector<float>{1})}, {"w"});
    EXPECT_THAT(std::string(u.status.text()), HasSubstr("axis " + std::to_string(axis) + " is outside of any rank"));
  }
}

TEST(Upgrade, UpsampleBecomesResize) {
  const Upgraded u = run(7, "Upsample", {{1, 1, 2, 2}}, {floats_attribute("scales", {1, 1, 2, 2})});
  EXPECT_IMPORTED(u);
  EXPECT_THAT(u.operators(), ElementsAre("Resize"));
  EXPECT_THAT(u.numbers(0, 2), ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(u.last().attr("coordinate_transformation_mode", ""), "asymmetric");
  EXPECT_EQ(u.last().attr("nearest_mode", ""), "floor");
}

TEST(Upgrade, ResizeReadsConstantScalesOfEnclosingGraphs) {
  const std::string body = testing::onnx::graph({node("Resize", {"x", "scales"}, {"r"})}, {}, {value("r")});
  const std::string bytes = model_bytes(
      {{"", 10}},
      testing::onnx::graph(
          {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", body), graph_attribute("else_branch", body)})},
          {tensor_value("x", kFloat, {1, 1, 4, 4}), tensor_value("c", BP_DTYPE_BOOL, {})}, {value("y")},
          {tensor("scales", kFloat, {4}, std::vector<float>{1, 1, 0.5f, 0.5f})}));
  auto imported = import_of(bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  const Graph& g = (*imported)->graph;
  const Graph& branch = *g.subgraphs[g.nodes[0].find("then_branch")->indices()[0]];
  EXPECT_EQ(branch.nodes[0].attr("nearest_mode", ""), "ceil");  // it shrinks
  EXPECT_THAT((*imported)->problems, ::testing::Not(::testing::Contains(HasSubstr("treated as upsampling"))));
}

TEST(Upgrade, BatchNormalizationBySpot) {
  const std::vector<Dim> stats{3, 4};
  Upgraded u = run(7, "BatchNormalization", {{2, 3, 4}, stats, stats, stats, stats}, {int_attribute("spatial", 0)});
  EXPECT_IMPORTED(u);
  EXPECT_EQ(u.last().op_type, "Add");
  u = run(7, "BatchNormalization", {{2, 3, 4}, {3}, {3}, {3}, {3}});
  EXPECT_IMPORTED(u);
  EXPECT_EQ(u.last().attr("training_mode", int64_t{1}), 0);
  u = run(7, "BatchNormalization", {{2, 3, 4}, {3}, {3}, {3}, {3}}, {}, 5);
  EXPECT_EQ(u.status.code(), BP_UNSUPPORTED);
  EXPECT_THAT(std::string(u.status.text()), HasSubstr("node 'n' (BatchNormalization)"));
}

TEST(Upgrade, GroupNormalizationRepeatsItsScale) {
  const Upgraded u = run(18, "GroupNormalization", {{2, 6, 4}, {3}, {3}}, {int_attribute("num_groups", 3)});
  EXPECT_IMPORTED(u);
  EXPECT_EQ(u.last().op_type, "GroupNormalization");
  EXPECT_EQ(u.last().since_version, 21u);
  const model::Type& scale = u.graph().values[u.last().inputs[1]].type;
  ASSERT_EQ(scale.rank, 1);
  EXPECT_EQ(scale.dims[0].extent, 6);
}

TEST(Upgrade, OldDefaultsStayOld) {
  const Upgraded u = run(1, "Selu", {{2}});
  EXPECT_IMPORTED(u);
  EXPECT_FLOAT_EQ(u.last().attr("alpha", 0.f), 1.6732f);
}

TEST(Upgrade, DefaultsAreWrittenOut) {
  const Upgraded u = run(17, "LeakyRelu", {{2}});
  EXPECT_IMPORTED(u);
  EXPECT_FLOAT_EQ(u.last().attr("alpha", 0.f), 0.01f);
}

TEST(Upgrade, CastNamesTypesByNumber) {
  const Upgraded u = run(1, "Cast", {{2}}, {string_attribute("to", "INT64")});
  EXPECT_IMPORTED(u);
  EXPECT_EQ(u.last().attr("to", int64_t{0}), int64_t{kInt64});
  EXPECT_EQ(run(1, "Cast", {{2}}, {string_attribute("to", "QUATERNION")}).status.code(), BP_INVALID_MODEL);
}

TEST(Upgrade, ScanOfABatchIsAScanOfScans) {
  const std::string body = testing::onnx::graph({node("Add", {"s", "v"}, {"s2"}), node("Identity", {"s2"}, {"o"})},
                                                {tensor_value("s", kFloat, {2}), tensor_value("v", kFloat, {2})},
                                                {tensor_value("s2", kFloat, {2}), tensor_value("o", kFloat, {2})});
  const std::string bytes = model_bytes(
      {{"", 8}}, testing::onnx::graph({node("Scan", {"", "s0", "vs"}, {"sn", "os"},
                                            {graph_attribute("body", body), int_attribute("num_scan_inputs", 1)})},
                                      {tensor_value("s0", kFloat, {1, 2}), tensor_value("vs", kFloat, {1, 3, 2})},
                                      {value("sn"), value("os")}));
  auto imported = import_of(bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  const Graph& g = (*imported)->graph;
  EXPECT_EQ(g.nodes[0].attr("num_scan_inputs", int64_t{0}), 2);
  const Graph& middle = *g.subgraphs[g.nodes[0].find("body")->indices()[0]];
  ASSERT_EQ(middle.nodes.size(), 1u);
  EXPECT_EQ(middle.nodes[0].op_type, "Scan");
  const model::Type& all = g.values[g.outputs[1]].type;
  ASSERT_EQ(all.rank, 3);
  EXPECT_EQ(all.dims[1].extent, 3);
}

}  // namespace
}  // namespace backplane::ops
