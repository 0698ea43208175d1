// SPDX-License-Identifier: Apache-2.0
// Invalid models are refused with a code and a message that names the fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "import/testing.h"

namespace backplane::model {
namespace {

using namespace import_test;
using ::testing::HasSubstr;

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
  std::string torn = tensor_head("w", kFloat, {2});
  Writer(torn).add_bytes(field::tensor::kFloatData, "1234567", 7);
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
      {"a subgraph that reads nothing's value",
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
       "two inputs named 'x'"},
      {"two weights of one name",
       plain({node("Relu", {"x"}, {"y"})},
             {tensor("w", kFloat, {1}, std::vector<float>{1}), tensor("w", kFloat, {1}, std::vector<float>{1})}),
       bad, "two initializers named 'w'"},
      {"packed data of a part of an element", plain({node("Relu", {"x"}, {"y"})}, {torn}), bad,
       "tensor 'w' has 7 bytes of packed data, not a multiple of 4"},
      {"no opset", model_bytes({}, graph({node("Relu", {"x"}, {"y"})}, x, y)), bad, "imports no opset of ai.onnx"},
      {"an opset of the future", model_bytes({{"", 99}}, graph({node("Relu", {"x"}, {"y"})}, x, y)), BP_UNSUPPORTED,
       "opset 99 of ai.onnx is newer than"},
      {"an IR version of the future", model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, x, y), {}, 99),
       BP_UNSUPPORTED, "IR version 99 is newer than 14"},
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
      {"a sparse tensor that would be huge", relu({}, {}, {{field::graph::kSparseInitializer, huge_sparse}}),
       BP_UNSUPPORTED, "the loader supports up to 1 GiB"},
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
       bad, "1 input and 1 output where function 'F'"},
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
