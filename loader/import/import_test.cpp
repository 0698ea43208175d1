// SPDX-License-Identifier: Apache-2.0
// Valid models are imported. Invalid ones are refused with a code and a message that names the fault.
#include "import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "import/builder.h"
#include "ir/tensor.h"
#include "ops/schema/schema.h"
#include "testing/onnx_writer.h"

namespace backplane::model {
namespace {

namespace fs = std::filesystem;
using namespace testing::onnx;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT, kInt64 = BP_DTYPE_INT64;

Result<std::shared_ptr<Model>> read(const std::string& bytes) {
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  return import(source);
}

std::vector<std::string> operators(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op_type);
  return names;
}

const Value* find_value(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

// A model y = Relu(x), plus the nodes, initializers and fields of the graph that a test adds.
std::string relu(const Texts& nodes = {}, const Texts& initializers = {}, const std::vector<Piece>& more = {}) {
  Texts all{node("Relu", {"x"}, {"y"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  return model_bytes({{"", 17}}, graph(all, {tensor_value("x", kFloat, {2, 3})}, {tensor_value("y", kFloat, {2, 3})},
                                       initializers, more));
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("backplane-import-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<std::shared_ptr<Model>> open(const std::string& path) {
  Source source;
  source.path = path;
  return import(source);
}

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
  EXPECT_THAT(unpack_strings(g.weights[find_value(g, "s")->weight]), ElementsAre("ab", "c"));
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

// The results of Split, If and Loop depend on how many outputs they have, and outputs that are not read may be unnamed.
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

// Devices may write every output that an operator always has.
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

TEST(Import, ExternalDataIsInTheFolderOfTheModel) {
  const Folder folder;
  const std::vector<float> numbers_in{1, 2, 3, 4};
  folder.write("weights/w.bin", std::string(reinterpret_cast<const char*>(numbers_in.data()), 16));
  const std::string path = folder.write(
      "m.onnx",
      relu({}, {external_tensor("w", kFloat, {2}, {{"location", "weights/w.bin"}, {"offset", "8"}, {"length", "8"}})}));
  auto result = open(path);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Weight& w = g.weights[find_value(g, "w")->weight];
  EXPECT_THAT(*numbers(w), ElementsAre(3, 4));
  EXPECT_EQ(w.file_offset, 8u);
  EXPECT_THAT(w.file, HasSubstr("w.bin"));
}

// In the caches of model hubs the files of a snapshot are links into a folder of blobs.
TEST(Import, ExternalDataMayBeALinkIntoTheFolderThatTheModelIsALinkInto) {
  const Folder folder;
  const std::vector<float> numbers_in{1, 2};
  folder.write("blobs/b1", std::string(reinterpret_cast<const char*>(numbers_in.data()), 8));
  folder.write("blobs/b2", relu({}, {external_tensor("w", kFloat, {2}, {{"location", "m.onnx_data"}})}));
  folder.write("elsewhere/b2", relu({}, {external_tensor("w", kFloat, {2}, {{"location", "m.onnx_data"}})}));
  fs::create_directories(folder.path() / "snapshots/1");
  fs::create_symlink("../../blobs/b1", folder.path() / "snapshots/1/m.onnx_data");
  const fs::path model = folder.path() / "snapshots/1/m.onnx";
  fs::create_symlink("../../blobs/b2", model);
  auto result = open(model.string());
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(*numbers(g.weights[find_value(g, "w")->weight]), ElementsAre(1, 2));

  fs::remove(model);
  fs::create_symlink("../../elsewhere/b2", model);
  EXPECT_THAT(std::string(open(model.string()).status().text()),
              HasSubstr("put the file itself next to the model, or let the model be a link into the same folder"));
}

TEST(Import, RefusesExternalDataElsewhere) {
  const Folder folder, outside;
  folder.write("in/w.bin", "12345678");
  folder.write("secret.bin", "12345678");
  fs::create_symlink(folder.path() / "secret.bin", folder.path() / "in/link.bin");
  fs::create_directory(folder.path() / "in/dir");
  struct Case {
    std::vector<std::pair<std::string, std::string>> entries;
    bp_status_t code;
    const char* text;
  };
  const Case cases[] = {
      {{{"location", "../secret.bin"}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", "a/../../secret.bin"}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", (folder.path() / "secret.bin").string()}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", "link.bin"}}, BP_INVALID_MODEL, "link that leaves"},
      {{{"location", "dir"}}, BP_INVALID_ARGUMENT, "is a directory"},
      {{{"location", "absent.bin"}}, BP_NOT_FOUND, "absent.bin"},
      {{{"location", ""}}, BP_INVALID_MODEL, "without a location"},
      {{{"location", "w.bin"}, {"offset", "4"}}, BP_INVALID_MODEL, "truncated"},
      {{{"location", "w.bin"}, {"offset", "18446744073709551615"}}, BP_INVALID_MODEL, "offset"},
      {{{"location", "w.bin"}, {"offset", "-8"}}, BP_INVALID_MODEL, "not a number"},
      {{{"location", "w.bin"}, {"length", "9"}}, BP_INVALID_MODEL, "needs 8 bytes and has 9"},
  };
  for (const Case& c : cases) {
    auto result = open(folder.write("in/m.onnx", relu({}, {external_tensor("w", kFloat, {2}, c.entries)})));
    ASSERT_FALSE(result.ok()) << c.text;
    EXPECT_EQ(result.status().code(), c.code) << result.status().text();
    EXPECT_THAT(std::string(result.status().text()), AllOf(HasSubstr("tensor 'w'"), HasSubstr(c.text)));
  }
}

TEST(Import, NamesWhatIsWrongWithTheFile) {
  const Folder folder;
  EXPECT_EQ(open((folder.path() / "absent.onnx").string()).status().code(), BP_NOT_FOUND);
  EXPECT_EQ(open(folder.path().string()).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(open(folder.write("empty.onnx", "")).status().code(), BP_INVALID_MODEL);
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(open((folder.path() / "pipe").string()).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(import({}).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(open(folder.write("text.onnx", "this is not a model")).status().text()),
              HasSubstr("text.onnx"));
}

struct BadModel {
  const char* what;
  std::string bytes;
  bp_status_t code;
  const char* text;
};

std::vector<BadModel> bad_models() {
  const Texts x{tensor_value("x", kFloat, {2})};
  const Texts y{tensor_value("y", kFloat, {2})};
  const auto plain = [&](const Texts& nodes, const Texts& weights = {}) {
    return model_bytes({{"", 17}}, graph(nodes, x, y, weights));
  };
  const auto calling = [&](const Texts& functions) {
    return model_bytes({{"", 17}, {"my", 1}}, graph({node("F", {"x"}, {"y"}, {}, "my", "call")}, x, y), functions);
  };
  std::string deep = graph({node("Identity", {"x"}, {"t"})}, {}, {value("t")});
  std::string deep_type;
  for (int i = 0; i < 500; ++i) {
    deep = graph({node("If", {"c"}, {"t"},
                       {graph_attribute("then_branch", deep), graph_attribute("else_branch", deep.substr(0, 0))})},
                 {}, {value("t")});
    std::string sequence, type;
    Writer(sequence).add_message(field::container_type::kElemType, deep_type);
    Writer(type).add_message(field::type::kSequence, sequence);
    deep_type = type;
  }
  std::string deep_input = value("q");
  Writer(deep_input).add_message(field::value_info::kType, deep_type);
  std::string sparse;
  Writer(sparse).add_message(field::sparse::kValues, tensor("w", kFloat, {1}, std::vector<float>{7}));
  Writer(sparse).add_message(field::sparse::kIndices, tensor("", kInt64, {1}, std::vector<int64_t>{9}));
  Writer(sparse).add_int64(field::sparse::kDims, 4);
  std::string huge_sparse = sparse;
  Writer(huge_sparse).add_int64(field::sparse::kDims, int64_t{1} << 40);
  // Each function calls the previous one twice, so inlining would create 2^59 nodes.
  Texts doubling{function("my", "F0", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})}, {{"", 17}})};
  for (int i = 1; i < 60; ++i) {
    const std::string before = "F" + std::to_string(i - 1);
    doubling.push_back(function("my", i == 59 ? "F" : "F" + std::to_string(i), {"v"}, {"w"},
                                {node(before, {"v"}, {"t"}, {}, "my"), node(before, {"t"}, {"w"}, {}, "my")},
                                {{"my", 1}}));
  }
  const uint32_t bad = BP_INVALID_MODEL;
  return {
      {"nothing", "", bad, "no graph"},
      {"random text", "hello, world", bad, "not an ONNX model"},
      {"two graphs", relu() + relu(), bad, "2 graphs"},
      {"a cycle",
       plain({node("Add", {"x", "b"}, {"a"}, {}, "", "first"), node("Relu", {"a"}, {"b"}, {}, "", "second"),
              node("Neg", {"b"}, {"y"})}),
       bad, "'second' (Relu)"},
      {"a node that reads itself", plain({node("Add", {"x", "y"}, {"y"}, {}, "", "loop")}), bad, "cycle: node 'loop'"},
      {"a value made twice", plain({node("Relu", {"x"}, {"y"}), node("Neg", {"x"}, {"y"})}), bad, "makes too"},
      {"an input made again", plain({node("Relu", {"x"}, {"x"}), node("Neg", {"x"}, {"y"})}), bad,
       "'x', which is an input or initializer of the graph"},
      {"a value that nothing provides", plain({node("Add", {"x", "ghost"}, {"y"})}), bad,
       "'ghost', which no node, input or initializer provides"},
      {"a sub-graph that reads nothing's value",
       model_bytes(
           {{"", 17}},
           graph({node("If", {"x"}, {"y"},
                       {graph_attribute("then_branch", graph({node("Relu", {"ghost"}, {"t"})}, {}, {value("t")})),
                        graph_attribute("else_branch", graph({}, {}, {value("x")}))})},
                 x, y)),
       bad, "'ghost', which no node, input or initializer provides"},
      {"an output that nothing provides", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"z"})}, x, y)), bad,
       "output 'y'"},
      {"no outputs", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"z"})}, x, {})), bad, "no outputs"},
      {"two inputs of one name", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, {x[0], x[0]}, y)), bad,
       "two inputs 'x'"},
      {"two weights of one name",
       plain({node("Relu", {"x"}, {"y"})},
             {tensor("w", kFloat, {1}, std::vector<float>{1}), tensor("w", kFloat, {1}, std::vector<float>{1})}),
       bad, "two initializers 'w'"},
      {"no opset", model_bytes({}, graph({node("Relu", {"x"}, {"y"})}, x, y)), bad, "imports no opset of ai.onnx"},
      {"an opset of the future", model_bytes({{"", 99}}, graph({node("Relu", {"x"}, {"y"})}, x, y)), BP_UNSUPPORTED,
       "opset 99 of ai.onnx is newer than"},
      {"an IR version of the future", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, x, y), {}, 99),
       BP_UNSUPPORTED, "IR version 99 is newer than 13"},
      {"a negative IR version", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, x, y), {}, -1), bad,
       "IR version -1 is negative"},
      {"opset 0", model_bytes({{"", 0}}, graph({node("Relu", {"x"}, {"y"})}, x, y)), bad, "opset version 0"},
      {"two opsets of one domain", model_bytes({{"", 17}, {"ai.onnx", 13}}, graph({node("Relu", {"x"}, {"y"})}, x, y)),
       bad, "two versions"},
      {"an operator that never was", plain({node("Relux", {"x"}, {"y"})}), bad,
       "'Relux' exists in opset 17 of ai.onnx"},
      {"an operator from later", plain({node("Swish", {"x"}, {"y"})}), bad, "it came with opset 24"},
      {"a domain without opset", plain({node("Mine", {"x"}, {"y"}, {}, "com.example")}), bad, "opset of com.example"},
      {"too few inputs", plain({node("Add", {"x"}, {"y"}, {}, "", "sum")}), bad,
       "node 'sum' (Add): 1 input where Add-14 takes 2"},
      {"too many inputs", plain({node("Relu", {"x", "x"}, {"y"})}), bad, "2 inputs where Relu-14 takes 1"},
      {"too many outputs", plain({node("Relu", {"x"}, {"y", "z"})}), bad, "2 outputs"},
      {"a required input left out", plain({node("Add", {"", "x"}, {"y"})}), bad, "input 0 ('A') is left out"},
      {"a variadic input left out", plain({node("Sum", {"x", "", "x"}, {"y"})}), bad,
       "input 1 ('data_0') is left out, but Sum-13 needs it"},
      {"no output", plain({node("Relu", {"x"}, {"y"}), node("Softmax", {"x"}, {})}), bad,
       "0 outputs where Softmax-13 has 1"},
      {"an unnamed output alone",
       model_bytes({{"", 11}}, graph({node("Relu", {"x"}, {"y"}), node("Softmax", {"x"}, {""})}, x, y)), bad,
       "0 outputs where Softmax-11 has 1"},
      {"a reference outside of functions",
       plain({node("Cast", {"x"}, {"y"}, {reference_attribute("to", BP_ATTR_INT, "type")})}), bad,
       "attribute 'to' refers to attribute 'type' of a function's call"},
      {"a default that is a reference",
       calling({function("my", "F", {"v"}, {"w"},
                         {node("Cast", {"v"}, {"w"}, {reference_attribute("to", BP_ATTR_INT, "type")})}, {{"", 17}}, {},
                         {reference_attribute("type", BP_ATTR_INT, "other")})}),
       bad, "attribute 'to' refers to attribute 'other' of a function's call"},
      {"an unknown attribute", plain({node("Relu", {"x"}, {"y"}, {int_attribute("speed", 3)})}), bad,
       "no attribute 'speed'"},
      {"a missing attribute", plain({node("Cast", {"x"}, {"y"})}), bad, "needs attribute 'to'"},
      {"a mistyped attribute", plain({node("Cast", {"x"}, {"y"}, {float_attribute("to", 1)})}), bad,
       "attribute 'to' has type float, but Cast"},
      {"an attribute twice", plain({node("Cast", {"x"}, {"y"}, {int_attribute("to", 1), int_attribute("to", 2)})}), bad,
       "two attributes are named 'to'"},
      {"an attribute of no type", plain({node("Cast", {"x"}, {"y"}, {attribute("to", 77, [](Writer&) {})})}), bad,
       "type 77"},
      {"no operator", plain({node("", {"x"}, {"y"})}), bad, "names no operator"},
      {"a short tensor", plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", kFloat, {3}, "12345678")}), bad,
       "tensor 'w' of type float[3] needs 12 bytes and has 8"},
      {"a long tensor", plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", kFloat, {1}, "12345678")}), bad,
       "needs 4 bytes and has 8"},
      {"a tensor of impossible size",
       plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", kFloat, {1ll << 40, 1ll << 40}, "")}), bad,
       "impossible extents"},
      {"a tensor of 2^64 bytes",
       plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", BP_DTYPE_COMPLEX128, {1ll << 60}, "")}), bad,
       "impossible extents"},
      {"a tensor of negative size", plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", kFloat, {-1}, "")}), bad,
       "impossible extents"},
      {"a tensor of unknown type", plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", 99, {1}, "1234")}), bad,
       "data type 99"},
      {"a tensor of too many dimensions",
       plain({node("Relu", {"x"}, {"y"})}, {raw_tensor("w", kFloat, std::vector<int64_t>(40, 1), "1234")}), bad,
       "40 dimensions"},
      {"a tensor without data", plain({node("Relu", {"x"}, {"y"})}, {tensor_head("w", kFloat, {2})}), bad,
       "needs 8 bytes and has 0"},
      {"strings that are missing", plain({node("Relu", {"x"}, {"y"})}, {tensor_head("w", BP_DTYPE_STRING, {2})}), bad,
       "2 strings"},
      {"external data from memory",
       plain({node("Relu", {"x"}, {"y"})}, {external_tensor("w", kFloat, {2}, {{"location", "w.bin"}})}), bad,
       "no directory was given"},
      {"a sparse index outside", relu({}, {}, {{field::graph::kSparseInitializer, sparse}}), bad,
       "index of value 0 is outside"},
      {"a sparse tensor that would be huge", relu({}, {}, {{field::graph::kSparseInitializer, huge_sparse}}), bad,
       "larger than 1 GiB"},
      {"graphs too deep", model_bytes({{"", 17}}, deep), bad, "nested deeper than"},
      {"types too deep", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, {x[0], deep_input}, y)), bad,
       "nested deeper than"},
      {"a name that is not UTF-8", plain({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"\xff\xfe"})}), bad,
       "not UTF-8"},
      {"a function that calls itself",
       calling({function("my", "F", {"v"}, {"w"}, {node("F", {"v"}, {"w"}, {}, "my")}, {{"my", 1}})}), bad,
       "calls itself"},
      {"a function with too many inputs",
       calling({function("my", "F", {}, {"w"}, {node("Constant", {}, {"w"}, {int_attribute("value_int", 1)})},
                         {{"", 17}})}),
       bad, "1 inputs and 1 outputs where function 'F'"},
      {"a function without its attribute",
       calling({function("my", "F", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})}, {{"", 17}}, {"slope"})}), bad,
       "needs attribute 'slope'"},
      {"two functions of one name",
       calling({function("my", "F", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})}, {{"", 17}}),
                function("my", "F", {"v"}, {"w"}, {node("Neg", {"v"}, {"w"})}, {{"", 17}})}),
       bad, "same domain, name"},
      {"functions that double for ever", calling(doubling), BP_RESOURCE_EXHAUSTED,
       "inlining functions takes more memory than"},
  };
}

TEST(Import, RefusesBadModelsByName) {
  for (const BadModel& bad : bad_models()) {
    SCOPED_TRACE(bad.what);
    auto result = read(bad.bytes);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(status_name(result.status().code()), status_name(bad.code)) << result.status().text();
    EXPECT_THAT(std::string(result.status().text()), HasSubstr(bad.text));
    EXPECT_EQ(result.status().text().find('\n'), std::string_view::npos);
  }
}

TEST(Builder, RefusesWeightsWhoseBytesExceed64Bits) {
  auto builder = Builder::create({{"", 17}});
  ASSERT_TRUE(builder.ok());
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{1ll << 60}, {1ll << 30, 1ll << 30}}) {
    const auto added = (*builder)->add_weight("w", BP_DTYPE_COMPLEX128, extents, nullptr, 0);
    EXPECT_EQ(added.status().code(), BP_INVALID_ARGUMENT) << added.status().text();
  }
  EXPECT_EQ(tensor_bytes(BP_DTYPE_COMPLEX128, std::vector<int64_t>{1ll << 59}), uint64_t{1} << 63);
  EXPECT_EQ(tensor_bytes(BP_DTYPE_COMPLEX128, std::vector<int64_t>{1ll << 60}), std::nullopt);
}

// A model with many kinds of protobuf messages, for tests that damage it.
std::string rich_model() {
  const std::string body = graph({node("Add", {"y", "w"}, {"t"})}, {}, {value("t")});
  std::string words = tensor_head("s", BP_DTYPE_STRING, {1});
  Writer(words).add_string(field::tensor::kStringData, "ab");
  return model_bytes(
      {{"", 17}, {"my", 1}},
      graph({node("Relu", {"x"}, {"y"}), node("F", {"y"}, {"f"}, {}, "my"),
             node("If", {"c"}, {"z"}, {graph_attribute("then_branch", body), graph_attribute("else_branch", body)}),
             node("Conv", {"f", "k"}, {"v"},
                  {ints_attribute("pads", {1, 1, 1, 1}), string_attribute("auto_pad", "NOTSET")})},
            {tensor_value("x", kFloat, {1, 1, "h", 3}), tensor_value("c", BP_DTYPE_BOOL, {})}, {value("v"), value("z")},
            {tensor("w", kFloat, {1}, std::vector<float>{1}), tensor("k", kFloat, {1, 1, 3, 3}, std::vector<float>(9)),
             words}),
      {function("my", "F", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})}, {{"", 17}})});
}

TEST(Import, SurvivesTruncation) {
  const std::string whole = rich_model();
  ASSERT_TRUE(read(whole).ok()) << read(whole).status().text();
  for (size_t size = 0; size < whole.size(); size += 7) {
    auto result = read(whole.substr(0, size));
    if (!result.ok()) {
      EXPECT_FALSE(result.status().text().empty());
    }
  }
}

TEST(Import, SurvivesDamage) {
  const std::string whole = rich_model();
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = whole;
    for (int hits = 1 + static_cast<int>(random() % 4); hits > 0; --hits)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    auto result = read(damaged);
    if (!result.ok()) {
      EXPECT_FALSE(result.status().text().empty());
    }
  }
  for (int round = 0; round < 2000; ++round) {
    std::string noise(random() % 200, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_FALSE(read(noise).ok());
  }
}

}  // namespace
}  // namespace backplane::model
