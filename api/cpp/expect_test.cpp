// SPDX-License-Identifier: Apache-2.0
// Each check in the chain refuses with its reason code and names the value that it found. The first failure counts.
#include "backplane/sdk/expect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "abi/testing/plugin_under_test.h"

namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::HasSubstr;

class Expects : public ::testing::Test {
 protected:
  // The node added last.
  Node node() { return {graph.get(), graph.get()->node_count - 1}; }
  Node call(const std::vector<uint32_t>& inputs) {
    graph.node("Op", 1, inputs, {2, 3});
    return node();
  }
  static void refused(const Verdict& verdict, uint32_t reason, const char* detail) {
    EXPECT_EQ(verdict.answer, BP_ANSWER_NO);
    EXPECT_EQ(verdict.reason, reason) << verdict.detail;
    EXPECT_THAT(verdict.detail, HasSubstr(detail));
  }

  TinyGraph graph;
  const uint32_t x = graph.input("x", {2, 3}), row = graph.input("row", {3}), open = graph.input("open", {-1, 3}),
                 ints = graph.input("ints", {2, 3}, BP_DTYPE_INT32), w = graph.weight("w", {1}, {1});
};

TEST_F(Expects, ReturnsYesWithAnEstimate) {
  const Verdict verdict = expect(call({x, x})).inputs(2).outputs(1).dtypes(kFloats).same_shapes().yes(3e-6, 0.5f);
  EXPECT_EQ(verdict.answer, BP_ANSWER_YES);
  EXPECT_EQ(verdict.seconds, 3e-6);
  EXPECT_EQ(verdict.confidence, 0.5f);
}

TEST_F(Expects, CountsOperands) {
  refused(expect(call({x})).inputs(2), BP_REASON_OTHER, "1 inputs; supported: 2");
  refused(expect(call({x, x, x})).inputs(1, 2), BP_REASON_OTHER, "3 inputs; supported: 1 to 2");
  refused(expect(call({BP_NONE, x})).inputs(1, 2), BP_REASON_OTHER, "input 0 is omitted");
  EXPECT_TRUE(expect(call({x, BP_NONE, BP_NONE})).inputs(1).ok());
  EXPECT_TRUE(expect(call({x, BP_NONE, x})).inputs(1, 3).ok());
  EXPECT_TRUE(expect(call({x})).form(kUnary).ok());
  refused(expect(call({ints})).form(kUnary), BP_REASON_DTYPE, "output 0 is float but must be int32");
  refused(expect(call({x})).form(kUnaryTest), BP_REASON_DTYPE, "must be bool");
  EXPECT_TRUE(expect(call({ints})).form(kUnaryOpen).ok());
}

TEST_F(Expects, ChecksTypes) {
  refused(expect(call({x, ints})).dtypes(kFloats), BP_REASON_DTYPE, "input 1 is int32; supported: float, float16");
  refused(expect(call({x, ints})).same_dtypes(), BP_REASON_DTYPE, "input 1 is int32 and input 0 is float");
  refused(expect(call({x, ints})).input_dtype(1, one(BP_DTYPE_INT64)), BP_REASON_DTYPE, "supported: int64");
  refused(expect(call({x})).output_dtype(0, kIntegers), BP_REASON_DTYPE, "output 0 is float");
  EXPECT_TRUE(expect(call({x, BP_NONE, x})).dtypes(one(BP_DTYPE_FLOAT)).same_dtypes().ok());
}

TEST_F(Expects, ChecksShapes) {
  refused(expect(call({open})).static_shapes(), BP_REASON_SHAPE, "the shape of input 0 is not known before the run");
  refused(expect(call({x, row})).same_shapes(), BP_REASON_SHAPE, "input 1 is [3] and output 0 [2,3]");
  refused(expect(call({row})).rank(0, 2), BP_REASON_SHAPE, "input 0 has rank 1; supported: 2 and more");
  refused(expect(call({x})).ranks(1), BP_REASON_SHAPE, "input 0 has rank 2; supported: 0 to 1");
  refused(expect(call({x})).elements_at_most(5), BP_REASON_SHAPE, "[2,3]; at most 5 elements");
  EXPECT_TRUE(expect(call({x, open})).ranks(2).elements_at_most(6).ok());
}

TEST_F(Expects, ChecksConstants) {
  EXPECT_TRUE(expect(call({x, w})).constant(1).constant(2).ok());
  refused(expect(call({x, x})).constant(1), BP_REASON_CONSTANT, "input 1 is not a constant");
}

TEST_F(Expects, ChecksAttributes) {
  call({x});
  graph.attribute("axis", int64_t{5});
  graph.attribute("alpha", 0.5f);
  graph.attribute("mode", "cubic");
  graph.attribute("pads", std::vector<int64_t>{0, -1});
  const Node n = node();
  EXPECT_TRUE(expect(n).attributes().integer("axis", -1, 5).number("alpha", 0, 1).choice("mode", {"cubic"}).ok());
  EXPECT_TRUE(
      expect(n).integer("absent", 1, 1).number("absent", 1, 1).choice("absent", {}).integers("absent", 1, 0, 1).ok());
  refused(expect(n).integer("axis", 0, 3), BP_REASON_ATTRIBUTE, "axis is 5; supported: 0 to 3");
  refused(expect(n).number("alpha", 1, 2), BP_REASON_ATTRIBUTE, "alpha is 0.5");
  refused(expect(n).choice("mode", {"linear", "nearest"}), BP_REASON_ATTRIBUTE, "'cubic'; supported: linear, nearest");
  refused(expect(n).integers("pads", 2, 0, 9), BP_REASON_ATTRIBUTE,
          "pads is [0,-1]; supported: 2 integers from 0 to 9");
  refused(expect(n).integers("pads", 4, -9, 9), BP_REASON_ATTRIBUTE, "supported: 4 integers");
  refused(expect(n).integer("alpha", 0, 1), BP_REASON_ATTRIBUTE, "attribute alpha has type FLOAT; it must be INT");
}

TEST_F(Expects, ChecksAttributesForOnnxTypes) {
  call({x});
  graph.attribute("axis", 1.0f);
  refused(expect(node()).attributes(), BP_REASON_ATTRIBUTE, "attribute axis has type FLOAT; it must be INT");
  call({x});
  graph.attribute("of_the_vendor", 1.0f);
  EXPECT_TRUE(expect(node()).attributes().ok());
  call({x});
  graph.attribute("scale", std::vector<int64_t>{1, 2});  // a list of numbers in some operators, one number in others
  EXPECT_TRUE(expect(node()).attributes().ok());
}

TEST(AttributeTypes, AreThoseOfTheNewestForms) {
  std::ifstream in(BACKPLANE_SOURCE_DIR "/loader/ops/schema/schemas.txt");
  std::map<std::string, std::map<std::string, std::string>> newest;  // by operator, then by name: the types
  std::string domain, op;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, name, type;
    words >> kind >> name >> type;
    if (kind == "domain") domain = name;
    if (kind == "op") newest[op = domain + "." + name].clear();  // versions ascend
    if (kind == "attr") newest[op][name.substr(0, name.find('!'))] = type;
  }
  ASSERT_GT(newest.size(), 150u);
  const std::map<uint32_t, std::string> names = {{BP_ATTR_INT, "int"},
                                                 {BP_ATTR_INTS, "ints"},
                                                 {BP_ATTR_FLOAT, "float"},
                                                 {BP_ATTR_STRING, "string"},
                                                 {BP_ATTR_TENSOR, "tensor"}};
  for (const auto& [of, attributes] : newest) {
    for (const auto& [name, type] : attributes) {
      const uint32_t listed = attribute_type(name);
      EXPECT_TRUE(listed == 0 || names.at(listed) == type) << of << " " << name << " is " << type;
    }
  }
}

TEST_F(Expects, TheFirstFailureCounts) {
  int made = 0;
  const auto text = [&] { return ++made, std::string("never"); };
  refused(expect(call({x})).inputs(2).dtypes(kIntegers).that(false, BP_REASON_COST, text).also(nullptr).yes(1, 1),
          BP_REASON_OTHER, "1 inputs");
  EXPECT_EQ(made, 0);
  refused(expect(call({x})).that(true, BP_REASON_COST, text).also([](const Node&) {
    return no(BP_REASON_COST, "expensive");
  }),
          BP_REASON_COST, "expensive");
}

}  // namespace
