// SPDX-License-Identifier: Apache-2.0
// Tests the views that backends get: a whole model, an island, older forms of nodes, and ONNX bytes.
#include "view/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "import/builder.h"
#include "import/import.h"
#include "ir/hash.h"
#include "ops/schema/schema.h"
#include "testing/onnx_writer.h"

namespace backplane::model {
namespace {

using namespace testing::onnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT;

std::shared_ptr<Model> read(const std::string& bytes) {
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  auto result = import(source);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? result.take() : nullptr;
}

std::string_view text(bp_text_t t) {
  return {t.data, t.size};
}

std::vector<std::string> names(const bp_graph_t* g, const uint32_t* values, uint32_t count) {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < count; ++i) all.emplace_back(text(bp_graph_value(g, values[i])->name));
  return all;
}

std::string serialized(const bp_graph_t* g) {
  std::string bytes;
  const auto sink = [](void* out, bp_text_t piece) { static_cast<std::string*>(out)->append(piece.data, piece.size); };
  EXPECT_EQ(g->api->serialize(g, UINT64_MAX, sink, &bytes, nullptr), BP_OK);
  return bytes;
}

// x, w → Add → a → Relu → b → If(c){ Neg(a) }{ Sub(b, w) } → y
const std::string& sample() {
  static const std::string kBytes = model_bytes(
      {{"", 17}},
      graph({node("Add", {"x", "w"}, {"a"}), node("Relu", {"a"}, {"b"}),
             node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", graph({node("Neg", {"a"}, {"t"})}, {}, {value("t")})),
                   graph_attribute("else_branch", graph({node("Sub", {"b", "w"}, {"e"})}, {}, {value("e")}))})},
            {tensor_value("x", kFloat, {"n", 2}), tensor_value("c", BP_DTYPE_BOOL, {})},
            {tensor_value("y", kFloat, {"n", 2})}, {tensor("w", kFloat, {2}, std::vector<float>{1, 2})}));
  return kBytes;
}

TEST(View, ExportsTheWholeGraph) {
  const auto model = read(sample());
  ASSERT_TRUE(model);
  const auto view = View::whole(model, {});
  const bp_graph_t* g = view->abi();
  ASSERT_EQ(g->node_count, 3u);
  EXPECT_EQ(text(bp_graph_node(g, 0)->op_type), "Add");
  EXPECT_THAT(names(g, g->inputs, g->input_count), ElementsAre("x", "c"));
  EXPECT_THAT(names(g, g->outputs, g->output_count), ElementsAre("y"));
  const bp_value_t* x = bp_graph_value(g, g->inputs[0]);
  const bp_type_t* type = bp_graph_type(g, x->type);
  ASSERT_EQ(type->rank, 2);
  EXPECT_EQ(text(bp_graph_symbol(g, g->dims[type->first_dim].symbol)->name), "n");
  EXPECT_EQ(x->flags, BP_VALUE_INPUT);
  EXPECT_EQ(x->slot, 0u);

  const uint32_t a = bp_node_output(g, bp_graph_node(g, 0), 0);
  const bp_value_t* shared = bp_graph_value(g, a);
  EXPECT_EQ(shared->producer, 0u);
  ASSERT_EQ(shared->use_count, 2u);
  EXPECT_EQ(g->uses[shared->first_use].node, 1u);
  EXPECT_EQ(g->uses[shared->first_use].slot, 0u);
  EXPECT_EQ(g->uses[shared->first_use + 1].node, 2u);
  EXPECT_EQ(g->uses[shared->first_use + 1].slot, BP_NONE);  // a subgraph reads it

  ASSERT_EQ(g->subgraph_count, 2u);
  const bp_node_t* branch = bp_graph_node(g, 2);
  for (uint32_t i = 0; i < branch->attribute_count; ++i) {
    const bp_attribute_t* attribute = bp_graph_attribute(g, branch->first_attribute + i);
    if (text(attribute->name) != "then_branch") continue;
    const bp_graph_t* body = g->subgraphs[*static_cast<const uint32_t*>(attribute->data)];
    EXPECT_EQ(body->parent, g);
    ASSERT_EQ(body->node_count, 1u);
    EXPECT_EQ(bp_graph_value(body, bp_node_input(body, bp_graph_node(body, 0), 0))->outer, a);
  }
}

TEST(View, AnIslandBringsItsConstants) {
  const auto model = read(sample());
  ASSERT_TRUE(model);
  const uint32_t nodes[] = {0, 1};
  const ValueId outputs[] = {model->graph.nodes[1].outputs[0], model->graph.nodes[0].outputs[0]};
  const auto view = View::island(model, nodes, outputs, {});
  const bp_graph_t* g = view->abi();
  ASSERT_EQ(g->node_count, 2u);
  EXPECT_THAT(names(g, g->inputs, g->input_count), ElementsAre("x"));
  EXPECT_THAT(names(g, g->outputs, g->output_count), ElementsAre("b", "a"));
  ASSERT_EQ(g->weight_count, 1u);
  EXPECT_EQ(g->subgraph_count, 0u);
  EXPECT_EQ(view->graph_value(g->outputs[0]), outputs[0]);

  const uint32_t branch[] = {2};
  const ValueId end[] = {model->graph.outputs[0]};
  const auto second = View::island(model, branch, end, {});
  g = second->abi();
  EXPECT_THAT(names(g, g->inputs, g->input_count), UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(g->weight_count, 1u);
  EXPECT_EQ(second->graph_nodes(0).first, 2u);
}

TEST(View, OldPluginsSeeFormsThatTheyKnow) {
  const auto model = read(model_bytes(
      {{"", 17}}, graph({node("Relu", {"x"}, {"a"}, {int_attribute("__tool", 1)}), node("Reshape", {"a", "s"}, {"b"}),
                         node("Softmax", {"b"}, {"y"}), node("Shape", {"y"}, {"z"}, {int_attribute("start", 1)})},
                        {tensor_value("x", kFloat, {2, 3})}, {value("y"), value("z")},
                        {tensor("s", BP_DTYPE_INT64, {1}, std::vector<int64_t>{-1})})));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->graph.nodes[0].since_version, ops::newest_schema("", "Relu")->since_version);
  const auto view = View::whole(model, KnownOpsets{.opsets = {{"", 13}}});
  const bp_graph_t* g = view->abi();
  ASSERT_EQ(g->node_count, 4u);
  EXPECT_EQ(bp_graph_node(g, 0)->since_version, 13u);
  EXPECT_FALSE(view->too_new(0));
  EXPECT_EQ(bp_graph_node(g, 0)->attribute_count, 0u);  // attributes for tools have no meaning in any form
  EXPECT_EQ(bp_graph_node(g, 1)->since_version, 13u);
  EXPECT_EQ(bp_graph_node(g, 1)->attribute_count, 0u);  // allowzero is newer than this form, and has its default 0
  EXPECT_FALSE(view->too_new(2));
  EXPECT_TRUE(view->too_new(3));  // Shape-13 cannot start at 1
  ASSERT_GE(g->opset_count, 1u);
  EXPECT_EQ(bp_graph_opset(g, 0)->version, 13u);
  EXPECT_EQ(g->ir_version, 14u);
  const KnownOpsets old_ir{.opsets = {}, .ir_version = 8};
  EXPECT_EQ(View::whole(model, old_ir)->abi()->ir_version, 8u);
  EXPECT_TRUE(View::whole(model, KnownOpsets{.opsets = {{"", 11}}})->too_new(2));  // Softmax-11 has another meaning
}

// Indices that a run computes may be negative from version 11 of Gather on.
TEST(View, NodesAreJudgedByTheOpsetsOfTheirFunction) {
  const std::string gather = node("Gather", {"v", "i"}, {"w"});
  const auto first_branch = [](const std::string& in_branch) {
    const std::string branch = graph({in_branch}, {}, {value("w")});
    return node("If", {"c"}, {"w"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)});
  };
  for (const bool nested : {false, true}) {
    const std::string body = nested ? first_branch(gather) : gather;
    for (const bool old_function : {false, true}) {
      const int64_t inside = old_function ? 10 : 13, outside = old_function ? 13 : 10;
      const auto model =
          read(model_bytes({{"", outside}, {"my", 1}},
                           graph({node("Gather", {"x", "i"}, {"y"}), node("F", {"x", "i", "c"}, {"z"}, {}, "my")},
                                 {tensor_value("x", kFloat, {4}), tensor_value("i", BP_DTYPE_INT64, {2}),
                                  tensor_value("c", BP_DTYPE_BOOL, {})},
                                 {value("y"), value("z")}),
                           {function("my", "F", {"v", "i", "c"}, {"w"}, {body}, {{"", inside}})}));
      ASSERT_TRUE(model);
      const auto view = View::whole(model, KnownOpsets{.opsets = {{"", 10}}});
      ASSERT_EQ(view->abi()->node_count, 2u);
      EXPECT_EQ(view->too_new(0), old_function) << nested;
      EXPECT_EQ(view->too_new(1), !old_function) << nested;
    }
  }
}

TEST(View, HashesContent) {
  const auto first = read(sample());
  const auto second = read(sample());
  ASSERT_TRUE(first && second);
  const auto view1 = View::whole(first, {}), view2 = View::whole(second, {});
  uint64_t hash1[2], hash2[2];
  ASSERT_EQ(view1->abi()->api->weight_hash(view1->abi(), 0, hash1, nullptr), BP_OK);
  ASSERT_EQ(view2->abi()->api->weight_hash(view2->abi(), 0, hash2, nullptr), BP_OK);
  EXPECT_EQ(hash1[0], hash2[0]);
  EXPECT_EQ(hash1[1], hash2[1]);
  EXPECT_NE(view1->abi()->id, view2->abi()->id);
  const float other[] = {1, 3};
  const float same[] = {1, 2};
  EXPECT_NE(hash_bytes(other, sizeof other, 0), hash_bytes(same, sizeof same, 0));
  EXPECT_NE(hash_bytes(same, 7, 0), hash_bytes(same, 8, 0));
  EXPECT_EQ(view1->abi()->api->weight_hash(view1->abi(), 99, hash1, nullptr), BP_INVALID_ARGUMENT);
}

TEST(View, FunctionsOfTheGraphRefuseNull) {
  const auto model = read(sample());
  ASSERT_TRUE(model);
  const auto view = View::whole(model, {});
  const bp_graph_t* const g = view->abi();
  const void* data = nullptr;
  uint64_t hash[2];
  EXPECT_EQ(g->api->weight_map(g, 0, nullptr, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(g->api->weight_map(nullptr, 0, &data, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(g->api->weight_hash(g, 0, nullptr, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(g->api->weight_hash(nullptr, 0, hash, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(g->api->serialize(g, 0, nullptr, nullptr, nullptr), BP_INVALID_ARGUMENT);
  g->api->weight_consumed(nullptr, 0);
}

// A sparse attribute is three indices: of two weights, and of a type with the extents of the dense tensor.
TEST(View, SparseAttributesKeepTheirExtents) {
  std::string sparse;
  Writer writer(sparse);
  writer.add_message(field::sparse::kValues, tensor("w", kFloat, {2}, std::vector<float>{7, 8}));
  writer.add_message(field::sparse::kIndices, tensor("", BP_DTYPE_INT64, {2}, std::vector<int64_t>{1, 5}));
  for (const int64_t extent : {2, 3}) writer.add_int64(field::sparse::kDims, extent);
  const auto write = [&](Writer& w) { w.add_message(field::attribute::kSparseTensor, sparse); };
  const std::string bytes =
      model_bytes({{"", 17}, {"acme", 1}},
                  graph({node("Pick", {"x"}, {"y"}, {attribute("s", BP_ATTR_SPARSE_TENSOR, write)}, "acme")},
                        {tensor_value("x", kFloat, {2})}, {tensor_value("y", kFloat, {2})}));
  std::string again = bytes;
  for (int round = 0; round < 2; ++round) {  // the second reads what the first wrote
    const std::shared_ptr<Model> model = read(again);
    ASSERT_NE(model, nullptr);
    const auto view = View::whole(model, {});
    const bp_graph_t* g = view->abi();
    const bp_attribute_t& a = *bp_graph_attribute(g, bp_graph_node(g, 0)->first_attribute);
    EXPECT_EQ(a.type, BP_ATTR_SPARSE_TENSOR);
    ASSERT_EQ(a.count, 1u);
    const auto* const parts = static_cast<const uint32_t*>(a.data);
    const auto second_of = [&](uint32_t weight, auto value) {  // weights may be unaligned
      std::memcpy(&value, static_cast<const char*>(bp_graph_weight(g, weight)->data) + sizeof value, sizeof value);
      return value;
    };
    EXPECT_EQ(second_of(parts[0], 0.0f), 8);
    EXPECT_EQ(second_of(parts[1], int64_t{0}), 5);
    const bp_type_t& dense = *bp_graph_type(g, parts[2]);
    EXPECT_EQ(dense.kind, BP_KIND_SPARSE_TENSOR);
    ASSERT_EQ(dense.rank, 2);
    EXPECT_EQ(g->dims[dense.first_dim].extent, 2);
    EXPECT_EQ(g->dims[dense.first_dim + 1].extent, 3);
    again = serialized(g);
  }
}

TEST(View, SerializedGraphsReadBackAlike) {
  const auto model = read(sample());
  ASSERT_TRUE(model);
  const auto view = View::whole(model, {});
  const std::string bytes = serialized(view->abi());
  const auto again = read(bytes);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->graph.nodes.size(), model->graph.nodes.size());
  for (size_t n = 0; n < model->graph.nodes.size(); ++n) {
    EXPECT_EQ(again->graph.nodes[n].op_type, model->graph.nodes[n].op_type);
    EXPECT_EQ(again->graph.nodes[n].since_version, model->graph.nodes[n].since_version);
  }
  const Type& type = again->graph.values[again->graph.outputs[0]].type;
  ASSERT_EQ(type.rank, 2);
  EXPECT_EQ(again->graph.symbols[type.dims[0].symbol].name, "n");
  const auto second_view = View::whole(again, {});
  EXPECT_EQ(serialized(second_view->abi()), bytes);
}

TEST(Builder, BuildsTheSameGraphAsAFile) {
  auto created = Builder::create({{"ai.onnx", 11}});
  ASSERT_TRUE(created.ok());
  Builder& builder = **created;
  Type type{BP_KIND_TENSOR, kFloat, 2, {{-1, builder.symbol("n"), 0}, {2, BP_NONE, 0}}, nullptr};
  const float numbers[] = {1, 2};
  const int64_t dims[] = {2};
  auto x = builder.add_input("x", type);
  auto w = builder.add_weight("w", kFloat, dims, numbers, sizeof numbers);
  ASSERT_TRUE(x.ok() && w.ok());
  Node add;
  add.op_type = "Add";
  add.inputs = {*x, *w};
  auto a = builder.add_node(add, 1, {});
  ASSERT_TRUE(a.ok());
  Node softmax;
  softmax.op_type = "Softmax";
  softmax.inputs = {*a};
  softmax.set(Attribute::of("axis", int64_t{-1}));
  const std::string_view names[] = {"y"};
  auto y = builder.add_node(softmax, 1, names);
  ASSERT_TRUE(y.ok() && builder.add_output(*y).ok());
  auto finished = builder.finish();
  ASSERT_TRUE(finished.ok()) << finished.status().text();
  const Graph& g = (*finished)->graph;
  EXPECT_EQ(g.weight_of(*w)->data, numbers);  // borrowed, not copied
  EXPECT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.values[g.outputs[0]].type.dims[0].symbol, type.dims[0].symbol);
  EXPECT_EQ(builder.finish().status().code(), BP_BAD_STATE);
}

TEST(Builder, RefusesInvalidInput) {
  auto created = Builder::create({{"", 17}});
  ASSERT_TRUE(created.ok());
  Builder& builder = **created;
  const float number = 1;
  const int64_t dims[] = {2};
  EXPECT_THAT(std::string(builder.add_weight("w", kFloat, dims, &number, 4).status().text()),
              HasSubstr("needs 8 bytes and has 4"));
  ASSERT_TRUE(builder.add_input("x", {}).ok());
  EXPECT_THAT(std::string(builder.add_input("x", {}).status().text()), HasSubstr("two values are named 'x'"));
  Node node;
  node.op_type = "Relu";
  node.inputs = {7};
  EXPECT_EQ(builder.add_node(node, 1, {}).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(builder.add_output(7).code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(builder.finish().status().code(), BP_INVALID_MODEL);
}

}  // namespace
}  // namespace backplane::model
