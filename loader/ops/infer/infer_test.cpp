// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <utility>

#include "ir/tensor.h"
#include "ops/infer/testing.h"

namespace backplane::ops {
namespace {

using model::Attribute;
using model::Graph;
using model::Node;
using model::ValueId;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Infer, ElementwiseOperatorsBroadcast) {
  Builder b;
  ValueId x = b.input({"N", "3", "1"}), y = b.input({"5"}), z = b.input({"?", "3", "5"});
  ValueId sum = b.node("Add", {x, y});
  ValueId relu = b.node("Relu", {sum});
  ValueId less = b.node("Less", {relu, z});
  b.expect_ok();
  EXPECT_EQ(b.text(relu), "float[N,3,5]");
  EXPECT_EQ(b.text(less), "bool[?,3,5]");
}

TEST(Infer, NumbersOfConvolutionsAndPools) {
  Builder b;
  ValueId x = b.input({"1", "3", "224", "224"}), w = b.input({"64", "3", "7", "7"});
  ValueId conv = b.node(
      "Conv", {x, w},
      {Attribute::of("strides", std::vector<int64_t>{2, 2}), Attribute::of("pads", std::vector<int64_t>{3, 3, 3, 3})});
  ValueId pool = b.node("MaxPool", {conv},
                        {Attribute::of("kernel_shape", std::vector<int64_t>{3, 3}),
                         Attribute::of("strides", std::vector<int64_t>{2, 2}), Attribute::of("ceil_mode", int64_t{1})});
  ValueId mean = b.node("GlobalAveragePool", {pool});
  ValueId flat = b.node("Flatten", {mean}, {Attribute::of("axis", int64_t{1})});
  b.expect_ok();
  EXPECT_EQ(b.text(conv), "float[1,64,112,112]");
  EXPECT_EQ(b.text(pool), "float[1,64,56,56]");
  EXPECT_EQ(b.text(flat), "float[1,64]");
}

TEST(Infer, TheSameArithmeticOnASymbolGivesTheSameSymbol) {
  Builder b;
  ValueId x = b.input({"N", "3", "48", "W"}), w = b.input({"8", "3", "3", "3"}), v = b.input({"8", "3", "1", "1"});
  auto strides = Attribute::of("strides", std::vector<int64_t>{2, 2});
  ValueId left = b.node("Conv", {x, w}, {strides, Attribute::of("pads", std::vector<int64_t>{1, 1, 1, 1})});
  ValueId right = b.node("Conv", {x, v}, {strides});
  ValueId sum = b.node("Add", {left, right});
  ValueId quarter = b.node("Conv", {b.node("Relu", {left}), b.input({"8", "8", "3", "3"})},
                           {strides, Attribute::of("pads", std::vector<int64_t>{1, 1, 1, 1})});
  ValueId joined = b.node("Concat", {left, right}, {Attribute::of("axis", int64_t{3})});
  b.expect_ok();
  EXPECT_EQ(b.text(sum), "float[N,8,24,floor((W + 1)/2)]");
  EXPECT_EQ(b.text(quarter), "float[N,8,12,floor((W + 3)/4)]");
  EXPECT_EQ(b.text(joined), "float[N,8,24,2*floor((W + 1)/2)]");
}

TEST(Infer, ShapeArithmeticIsFollowed) {
  Builder b;
  ValueId x = b.input({"N", "512", "1", "T"});
  ValueId shape = b.node("Shape", {x});
  ValueId batch = b.node("Gather", {shape, b.ints({0}, true)}, {Attribute::of("axis", int64_t{0})});
  ValueId channels = b.node("Gather", {shape, b.ints({1}, true)});
  ValueId half = b.node("Div", {channels, b.ints({2}, true)});
  ValueId parts = b.node(
      "Concat", {b.node("Unsqueeze", {batch, b.ints({0})}), b.ints({-1}), b.node("Unsqueeze", {half, b.ints({0})})},
      {Attribute::of("axis", int64_t{0})});
  ValueId y = b.node("Reshape", {x, parts});
  ValueId back = b.node("Expand", {b.input({"1"}), shape});
  b.expect_ok();
  EXPECT_EQ(b.text(y), "float[N,2*T,256]");
  EXPECT_EQ(b.text(back), "float[N,512,1,T]");
  EXPECT_EQ(b.constant(half), std::vector<int64_t>{256});
  for (const Node& node : b.graph->nodes) {
    if (node.op_type == "Div") {
      EXPECT_EQ(node.outputs[0], BP_NONE) << "a constant has no producer";
    }
  }
}

TEST(Infer, SlicesAndRanges) {
  Builder b;
  ValueId x = b.input({"10", "S", "7"});
  ValueId a = b.node("Slice", {x, b.ints({-3, 0, 6}), b.ints({INT64_MAX, INT64_MAX, INT64_MIN}), b.ints({0, 1, 2}),
                               b.ints({1, 2, -2})});
  ValueId c = b.node("Slice", {x, b.ints({2}), b.ints({INT64_MAX}), b.ints({1})});
  ValueId r = b.node("Range", {b.ints({10}, true), b.ints({0}, true), b.ints({-3}, true)});
  ValueId length = b.node("Gather", {b.node("Shape", {x}), b.ints({1}, true)});
  ValueId positions = b.node("Range", {b.ints({0}, true), length, b.ints({1}, true)});
  b.expect_ok();
  EXPECT_EQ(b.text(a), "float[3,floor((S + 1)/2),4]");
  EXPECT_EQ(b.text(c), "float[10,max(S - 2, 0),7]");
  EXPECT_EQ(b.constant(r), (std::vector<int64_t>{10, 7, 4, 1}));
  EXPECT_EQ(b.text(positions), "int64[S]");
}

TEST(Infer, RealShapeArithmeticOfOldExporters) {
  Builder b;
  ValueId x = b.input({"1", "4", "15", "W"});
  ValueId size = b.node("Slice", {b.node("Shape", {x}), b.ints({2}), b.ints({4})});
  auto real = Attribute::of("to", int64_t{BP_DTYPE_FLOAT});
  auto whole = Attribute::of("to", int64_t{BP_DTYPE_INT64});
  ValueId doubled = b.node("Floor", {b.node("Mul", {b.node("Cast", {size}, {real}), b.floats({2})})});
  ValueId sizes =
      b.node("Concat", {b.ints({1, 4}), b.node("Cast", {doubled}, {whole})}, {Attribute::of("axis", int64_t{0})});
  ValueId y = b.node("Resize", {x, BP_NONE, BP_NONE, sizes});
  ValueId z = b.node("Resize", {x, BP_NONE, b.floats({1, 1, 0.5f, 2})});
  b.expect_ok();
  EXPECT_EQ(b.text(y), "float[1,4,30,2*W]");
  EXPECT_EQ(b.text(z), "float[1,4,7,2*W]");
}

TEST(Infer, FractionsAndUnknownElementsAreNoIntegers) {
  Builder b;
  auto real = Attribute::of("to", int64_t{BP_DTYPE_FLOAT});
  auto whole = Attribute::of("to", int64_t{BP_DTYPE_INT64});
  ValueId size = b.node("Cast", {b.node("Shape", {b.input({"W"})})}, {real});
  ValueId least = b.node("Cast", {b.node("Min", {size, b.floats({2.5f})})}, {whole});
  ValueId most = b.node("Cast", {b.node("Max", {size, b.floats({2.5f})})}, {whole});
  ValueId two = b.node("Cast", {b.node("Min", {size, b.floats({2})})}, {whole});
  ValueId x = b.node("ConstantOfShape", {least}), y = b.node("ConstantOfShape", {most});
  ValueId z = b.node("ConstantOfShape", {two});
  ValueId joined = b.node("Concat", {b.input({"1"}), b.floats({1})}, {Attribute::of("axis", int64_t{0})});
  ValueId product = b.node("Mul", {joined, b.floats({0})});
  b.expect_ok();
  EXPECT_EQ(b.text(x), "float[?]");
  EXPECT_EQ(b.text(y), "float[?]");
  EXPECT_EQ(b.text(z), "float[min(W, 2)]");
  EXPECT_EQ(b.graph->weight_of(product), nullptr) << "0 times infinity is not 0";
}

TEST(Infer, UnknownStaysUnknown) {
  Builder b;
  ValueId x = b.graph->add_value("x");
  b.graph->inputs.push_back(x);
  ValueId shape = b.input({"3"}, BP_DTYPE_INT64);
  ValueId relu = b.node("Relu", {x});
  ValueId y = b.node("Reshape", {relu, shape});
  ValueId t = b.node("Transpose", {y}, {Attribute::of("perm", std::vector<int64_t>{2, 0, 1})});
  ValueId open = b.node("Abs", {b.input({"?", "2"})});
  ValueId foreign = b.nodes("Magic", {t}, 1, {}, "com.example")[0];
  b.graph->values[foreign].type = b.type(BP_DTYPE_INT32, {"4"});
  ValueId after = b.node("Neg", {foreign});
  b.expect_ok();
  EXPECT_EQ(b.text(relu), "?");
  EXPECT_EQ(b.text(t), "?[?,?,?]");
  EXPECT_EQ(b.text(open), "float[" + b.graph->values[b.graph->inputs.back()].name + ".0,2]");
  EXPECT_EQ(b.text(after), "int32[4]");
}

TEST(Infer, DeclaredShapesFillGapsAndContradictionsFail) {
  Builder b;
  ValueId x = b.input({"N", "3"});
  ValueId y = b.node("NonZero", {x});
  b.graph->values[y].type = b.type(BP_DTYPE_INT64, {"2", "found"});
  ValueId z = b.node("NonZero", {x});
  b.graph->values[z].type = b.type(BP_DTYPE_INT64, {"2", "8"});
  b.expect_ok();
  EXPECT_EQ(b.text(y), "int64[2,found]");
  EXPECT_EQ(b.text(z), "int64[2,8]");

  ValueId w = b.node("Relu", {x});
  b.graph->values[w].type = b.type(BP_DTYPE_DOUBLE, {"N", "3"});
  Status status = b.run();
  EXPECT_EQ(status.code(), BP_INVALID_MODEL);
  EXPECT_THAT(std::string(status.text()), HasSubstr("node 'Relu' (Relu): output"));
}

TEST(Infer, ErrorsNameTheNodeAndWhatWasSeen) {
  struct Case {
    const char* op;
    std::vector<std::vector<std::string>> inputs;
    std::vector<Attribute> attributes;
    const char* words;
  };
  const std::vector<Case> cases = {
      {"Add", {{"2", "3"}, {"4"}}, {}, "[2, 3] and [4] do not broadcast"},
      {"PRelu", {{"1"}, {"5"}}, {}, "the slope's shape [5] does not broadcast to that of x, [1]"},
      {"PRelu", {{"3"}, {"2", "3"}}, {}, "the slope's shape [2, 3] does not broadcast to that of x, [3]"},
      {"MatMul", {{"2", "3"}, {"4", "5"}}, {}, "3 columns do not match 4 rows"},
      {"Gemm", {{"2", "3"}, {"4", "3"}}, {}, "3 columns do not match 4 rows"},
      {"Concat", {{"2", "3"}, {"2", "4"}}, {Attribute::of("axis", int64_t{0})}, "axis 1 differ: 3 and 4"},
      {"Conv", {{"1", "3", "8"}, {"4", "2", "3"}}, {}, "X has 3 channels, but W is made for 2"},
      {"Conv", {{"1", "3", "2"}, {"4", "3", "5"}}, {}, "extents cannot be negative"},
      {"Conv",
       {{"1", "3", "8"}, {"4", "3", "3"}},
       {Attribute::of("strides", std::vector<int64_t>{0})},
       "strides has 0"},
      {"Softmax", {{"2"}}, {Attribute::of("axis", int64_t{1})}, "axis 1 is outside of rank 1"},
      {"Transpose", {{"2", "3"}}, {Attribute::of("perm", std::vector<int64_t>{0, 0})}, "axis 0 twice"},
      {"Flatten", {{"2"}}, {Attribute::of("axis", INT64_MIN)}, "outside of rank 1"},
      {"Einsum", {{"2", "3"}}, {Attribute::of("equation", std::string("ijk->i"))}, "names 3 axes"},
      {"And", {{"2"}, {"2"}}, {}, "input A (0) is a float tensor, but it must be one of: bool"},
      {"Cast", {{"2"}}, {Attribute::of("to", int64_t{99})}, "data type 99"},
  };
  for (const Case& one : cases) {
    Builder b;
    std::vector<ValueId> inputs;
    for (const auto& dims : one.inputs) inputs.push_back(b.input(dims));
    b.node(one.op, inputs, one.attributes);
    Status status = b.run();
    EXPECT_EQ(status.code(), BP_INVALID_MODEL) << one.op;
    EXPECT_EQ(status.node(), 0u);
    EXPECT_THAT(std::string(status.text()), HasSubstr(std::string("node '") + one.op));
    EXPECT_THAT(std::string(status.text()), HasSubstr(one.words));
  }
}

TEST(Infer, AbsurdValuesAreErrorsOrUnknown) {
  Builder b;
  ValueId x = b.input({"4611686018427387904", "4611686018427387904"});
  ValueId flat = b.node("Flatten", {x}, {Attribute::of("axis", int64_t{0})});
  ValueId tile = b.node("Tile", {x, b.ints({INT64_MAX, 2})});
  ValueId r = b.node("Range", {b.ints({INT64_MIN}, true), b.ints({INT64_MAX}, true), b.ints({1}, true)});
  ValueId fill = b.node("ConstantOfShape", {b.ints({INT64_MAX, INT64_MAX})});
  ValueId slice = b.node("Slice", {x, b.ints({INT64_MIN}), b.ints({INT64_MAX}), b.ints({0}), b.ints({INT64_MAX})});
  ValueId part = b.node("Slice", {x, b.ints({0}), b.ints({INT32_MAX}), b.ints({0})});
  b.expect_ok();
  EXPECT_EQ(b.text(flat), "float[1,?]");
  EXPECT_EQ(b.text(tile), "float[?,?]");
  EXPECT_EQ(b.text(r), "int64[?]");
  EXPECT_EQ(b.text(fill), "float[9223372036854775807,9223372036854775807]");
  EXPECT_EQ(b.text(slice), "float[1,4611686018427387904]");
  EXPECT_EQ(b.text(part), "float[2147483647,4611686018427387904]");

  Builder deep;
  deep.node("Unsqueeze", {deep.input({"1"}), deep.ints(std::vector<int64_t>(40, 0))});
  EXPECT_EQ(deep.run().code(), BP_INVALID_MODEL);
  Builder tuples;
  tuples.node("GatherND", {tuples.input({"2", "3"}), tuples.input({"2", "9223372036854775807"}, BP_DTYPE_INT64)},
              {Attribute::of("batch_dims", int64_t{1})});
  EXPECT_THAT(std::string(tuples.run().text()),
              HasSubstr("tuples of 9223372036854775807 elements, but data of rank 2"));
  Builder negative;
  negative.node("ConstantOfShape", {negative.ints({-5})});
  EXPECT_THAT(std::string(negative.run().text()), HasSubstr("[-5]: extents cannot be negative"));
}

TEST(Infer, NamesOfExtentsAreUnambiguous) {
  Builder b;
  const ValueId rest = b.node("Mod", {b.node("Shape", {b.input({"N"})}), b.ints({4})});
  const ValueId sum = b.node("ConstantOfShape", {b.node("Mod", {rest, b.ints({3})})});
  const ValueId p = b.node("Shape", {b.input({"P"})}), q = b.node("Shape", {b.input({"Q"})});
  const ValueId wanted = b.node("Concat", {p, q, b.ints({-1})}, {Attribute::of("axis", int64_t{0})});
  const ValueId product = b.node("Reshape", {b.input({"A"}), wanted});
  const ValueId twice = b.node("Tile", {b.input({"L + 1"}), b.ints({2})});
  b.expect_ok();
  EXPECT_EQ(b.text(sum), "float[N - 4*floor(N/4) - 3*floor((N - 4*floor(N/4))/3)]");
  EXPECT_EQ(b.text(product), "float[P,Q,floor(A/(P*Q))]");
  EXPECT_EQ(b.text(twice), "float[2*(L + 1)]");
}

TEST(Infer, SymbolsDoNotFitSmallTypes) {
  Builder b;
  const ValueId negative = b.node("Mul", {b.node("Shape", {b.input({"N"})}), b.ints({-3})});
  const auto through = [&](bp_dtype_t dtype) {
    const ValueId cast = b.node("Cast", {negative}, {Attribute::of("to", int64_t{dtype})});
    const ValueId back = b.node("Cast", {cast}, {Attribute::of("to", int64_t{BP_DTYPE_INT64})});
    return b.node("ConstantOfShape", {b.node("Neg", {back})});
  };
  const ValueId byte = through(BP_DTYPE_UINT8), wide = through(BP_DTYPE_INT32);
  b.expect_ok();
  EXPECT_EQ(b.text(byte), "float[?]");  // as a uint8, -3 is 253
  EXPECT_EQ(b.text(wide), "float[3*N]");
}

TEST(Infer, SubgraphsSeeTheOuterGraph) {
  Builder b;
  ValueId x = b.input({"N", "4"}), condition = b.input({}, BP_DTYPE_BOOL);
  ValueId shape = b.node("Shape", {x});
  Attribute branches[2] = {Attribute::of("then_branch", int64_t{0}), Attribute::of("else_branch", int64_t{0})};
  for (uint32_t i = 0; i < 2; ++i) {
    auto inner = std::make_unique<Graph>();
    inner->parent = b.graph;
    Graph* outer = std::exchange(b.graph, inner.get());
    ValueId seen = b.graph->add_value("seen");
    b.graph->values[seen].outer = shape;
    ValueId y = i == 0 ? b.node("ConstantOfShape", {seen}) : b.node("ConstantOfShape", {b.ints({7, 4})});
    b.graph->outputs.push_back(y);
    b.graph = outer;
    branches[i].type = BP_ATTR_GRAPH;
    branches[i].data = std::vector<uint32_t>{i};
    b.graph->subgraphs.push_back(std::move(inner));
  }
  ValueId y = b.node("If", {condition}, {branches[0], branches[1]});
  b.expect_ok();
  const Graph& then_graph = *b.graph->subgraphs[0];
  EXPECT_EQ(b.text(then_graph.values[then_graph.outputs[0]].type), "float[N,4]");
  EXPECT_EQ(b.text(y), "float[?,4]");
}

// torch squeezes an axis in a branch that is taken where its extent is 1. With another extent, that branch contradicts
// itself, which matters only if it may be taken.
TEST(Infer, BranchesThatAreNeverTakenMayContradictThemselves) {
  const auto squeezes = [](Builder& b, bool is_known, bp_dtype_t dtype = BP_DTYPE_FLOAT) {
    const ValueId x = b.input({"2", "3"}, dtype);
    const ValueId is_one = b.node("Equal", {b.node("Gather", {b.node("Shape", {x}), b.ints({1})}), b.ints({1})});
    const ValueId condition = is_known ? is_one : b.input({}, BP_DTYPE_BOOL);
    Attribute branches[2] = {Attribute::of("then_branch", int64_t{0}), Attribute::of("else_branch", int64_t{0})};
    for (uint32_t i = 0; i < 2; ++i) {
      auto inner = std::make_unique<Graph>();
      inner->parent = b.graph;
      Graph* outer = std::exchange(b.graph, inner.get());
      const ValueId seen = b.graph->add_value("seen");
      b.graph->values[seen].outer = x;
      b.graph->outputs.push_back(i == 0 ? b.node("Squeeze", {seen, b.ints({1})}) : seen);
      b.graph = outer;
      branches[i].type = BP_ATTR_GRAPH;
      branches[i].data = std::vector<uint32_t>{i};
      b.graph->subgraphs.push_back(std::move(inner));
    }
    return b.node("If", {condition}, {branches[0], branches[1]});
  };
  Builder b;
  const ValueId y = squeezes(b, true);
  b.expect_ok();
  EXPECT_EQ(b.text(y), "float[2,3]");
  const Graph& never = *b.graph->subgraphs[0];
  EXPECT_TRUE(never.nodes.empty());
  EXPECT_EQ(b.text(never.values[never.outputs[0]].type), "float[0]");
  Builder strings;
  squeezes(strings, true, BP_DTYPE_STRING);
  strings.expect_ok();
  const Graph& none = *strings.graph->subgraphs[0];
  EXPECT_TRUE(model::strings_fit(*none.weight_of(none.outputs[0])));
  Builder open;
  squeezes(open, false);
  EXPECT_THAT(std::string(open.run().text()), HasSubstr("cannot drop axis 1"));
}

// An extent that the model leaves open counts as 64, or as the nearest number that its bounds allow.
TEST(Infer, ExpectedExtentsFollowFromThoseOfTheInputs) {
  Builder b;
  const ValueId x = b.input({"N", "3", "H", "W"}), w = b.input({"8", "3", "3", "3"});
  const ValueId half = b.node("Conv", {x, w}, {Attribute::of("strides", std::vector<int64_t>{2, 2})});
  const ValueId flat = b.node("Flatten", {half});
  const ValueId both = b.node("Concat", {flat, b.node("Flatten", {x})}, {Attribute::of("axis", int64_t{1})});
  b.expect_ok();
  const auto expected = [&](ValueId value) {
    std::vector<int64_t> extents;
    for (const bp_dim_t& dim : b.graph->values[value].type.dims)
      extents.push_back(dim.extent >= 0 ? dim.extent : b.graph->symbols[dim.symbol].expected);
    return extents;
  };
  EXPECT_THAT(expected(half), ElementsAre(64, 8, 31, 31));
  EXPECT_THAT(expected(both), ElementsAre(64, 8 * 31 * 31 + 3 * 64 * 64));
  for (model::Symbol& symbol : b.graph->symbols) {
    if (symbol.name == "N") symbol.max = 1;
    if (symbol.name == "W") symbol.min = symbol.max = 320;
  }
  set_expected_extents(*b.graph);
  EXPECT_THAT(expected(half), ElementsAre(1, 8, 31, 159));
  EXPECT_THAT(expected(flat), ElementsAre(1, 8 * 31 * 159));
}

// Tools that edit the extents of a model's inputs leave the declarations of inner values unchanged.
TEST(Infer, InferredExtentsReplaceStaleOnes) {
  Builder b;
  const ValueId x = b.input({"4", "3"});
  const ValueId y = b.node("Relu", {x}), z = b.node("Relu", {y});
  const ValueId symbolic = b.node("Relu", {b.input({"N", "3"})});
  b.graph->values[y].type = b.type(BP_DTYPE_FLOAT, {"1", "3"});
  b.graph->values[z].type = b.type(BP_DTYPE_FLOAT, {"1", "3", "1"});
  b.graph->values[symbolic].type = b.type(BP_DTYPE_FLOAT, {"1", "3"});
  b.expect_ok();
  EXPECT_EQ(b.text(symbolic), "float[N,3]");
  EXPECT_EQ(b.text(y), "float[4,3]");
  EXPECT_EQ(b.text(z), "float[4,3]");
  EXPECT_THAT(b.model.problems, ElementsAre(AllOf(HasSubstr("inferred and declared are extents 4 and 1 of axis 0"),
                                                  HasSubstr("and so do 1 more"))));
}

// torch declares the shape of one branch for the result. That is wrong if the other branch has another shape.
TEST(Infer, BranchesThatDifferOverruleTheDeclaredShape) {
  const auto declared_as = [](std::vector<std::string> declared, const std::vector<std::string>(&given)[2]) {
    Builder b;
    const ValueId condition = b.input({}, BP_DTYPE_BOOL);
    Attribute branches[2] = {Attribute::of("then_branch", int64_t{0}), Attribute::of("else_branch", int64_t{0})};
    for (uint32_t i = 0; i < 2; ++i) {
      const ValueId x = b.input(given[i]);
      auto inner = std::make_unique<Graph>();
      inner->parent = b.graph;
      const ValueId seen = inner->add_value("seen");
      inner->values[seen].outer = x;
      inner->outputs.push_back(seen);
      branches[i].type = BP_ATTR_GRAPH;
      branches[i].data = std::vector<uint32_t>{i};
      b.graph->subgraphs.push_back(std::move(inner));
    }
    const ValueId y = b.node("If", {condition}, {branches[0], branches[1]});
    b.graph->values[y].type = b.type(BP_DTYPE_FLOAT, declared);
    b.expect_ok();
    return b.text(y);
  };
  EXPECT_EQ(declared_as({}, {{"1"}, {}}), "float");
  EXPECT_EQ(declared_as({"2", "3"}, {{"2", "3"}, {"4", "3"}}), "float[?,3]");
  EXPECT_EQ(declared_as({"N", "3"}, {{"M", "3"}, {"K", "3"}}), "float[N,3]");
}

// Operators of com.microsoft have no schemas. The types of common ones are inferred; outputs of the others stay
// unknown.
TEST(Infer, ForeignOperatorsThatModelsUseHaveRules) {
  Builder b;
  ValueId x = b.input({"N", "S", "64"}), weights = b.input({"32", "2", "16"}, BP_DTYPE_UINT8), scales = b.input({"64"});
  ValueId lengths = b.input({"N"}, BP_DTYPE_INT32), total = b.input({}, BP_DTYPE_INT32);
  const auto outputs = [&](const char* op, const std::vector<ValueId>& inputs, size_t count,
                           std::vector<Attribute> attributes) {
    return b.nodes(op, inputs, count, std::move(attributes), "com.microsoft");
  };
  auto product = outputs("MatMulNBits", {x, weights, scales}, 1, {Attribute::of("N", int64_t{32})});
  auto attention = outputs("GroupQueryAttention", {x, BP_NONE, BP_NONE, BP_NONE, BP_NONE, lengths, total}, 3,
                           {Attribute::of("num_heads", int64_t{4}), Attribute::of("kv_num_heads", int64_t{2})});
  const ValueId five = b.ints({5});
  const auto with_past = [&](const std::vector<std::string>& past) {
    const ValueId cache = b.input(past);
    return outputs("GroupQueryAttention", {x, BP_NONE, BP_NONE, cache, cache, lengths, five}, 3,
                   {Attribute::of("num_heads", int64_t{4}), Attribute::of("kv_num_heads", int64_t{2})})[2];
  };
  const ValueId grown = with_past({"N", "2", "3", "8"}), kept = with_past({"N", "2", "9", "8"});
  auto other = outputs("NobodyKnowsThis", {x}, 1, {});
  b.expect_ok();
  EXPECT_EQ(b.text(product[0]), "float[N,S,32]");
  EXPECT_EQ(b.text(attention[0]),
            "float[N,S,32]");  // the 64 columns are 4 heads of queries and 2 heads each of keys and values
  EXPECT_EQ(b.text(attention[1]), "float[N,2,?,8]");
  EXPECT_EQ(b.text(grown), "float[N,2,5,8]");
  EXPECT_EQ(b.text(kept), "float[N,2,9,8]");
  EXPECT_EQ(b.text(other[0]), "unknown");
}

TEST(Infer, ForeignEmbeddingsAndConvolutions) {
  Builder b;
  const auto foreign = [&](const char* op, const std::vector<ValueId>& inputs, size_t count,
                           std::vector<Attribute> attributes) {
    return b.nodes(op, inputs, count, std::move(attributes), "com.microsoft");
  };
  ValueId ids = b.input({"N", "S"}, BP_DTYPE_INT32), words = b.input({"99", "64"}, BP_DTYPE_FLOAT16);
  ValueId row = b.input({"64"}, BP_DTYPE_FLOAT16);
  auto embedded = foreign("EmbedLayerNormalization", {ids, BP_NONE, words, words, BP_NONE, row, row}, 3, {});
  ValueId image = b.input({"N", "H", "32", "6"}), weights = b.input({"8", "3", "5", "3"}), bias = b.input({"8"});
  const auto twice = Attribute::of("strides", std::vector<int64_t>{2, 2});
  auto last = foreign("NhwcConv", {image, weights, bias}, 1, {twice, Attribute::of("group", int64_t{2})});
  ValueId planes = b.input({"N", "6", "H", "32"}), kernels = b.input({"8", "6", "3", "5"});
  auto first = foreign("FusedConv", {planes, kernels}, 1, {twice});
  ValueId bytes = b.input({"N", "S", "32"}, BP_DTYPE_UINT8), projection = b.input({"32", "96"}, BP_DTYPE_INT8);
  ValueId scale = b.input({}), columns = b.input({"96"}), past = b.input({"2", "N", "4", "5", "8"});
  auto attended = foreign("QAttention", {bytes, projection, columns, scale, columns, BP_NONE, BP_NONE, BP_NONE, past},
                          2, {Attribute::of("num_heads", int64_t{4})});
  ValueId sequence = b.input({"T", "N", "16"}), gates = b.input({"2", "16", "32"}, BP_DTYPE_INT8);
  ValueId recurrent = b.input({"2", "8", "32"}, BP_DTYPE_INT8);
  auto states = foreign("DynamicQuantizeLSTM", {sequence, gates, recurrent}, 3,
                        {Attribute::of("direction", std::string("bidirectional"))});
  b.expect_ok();
  EXPECT_EQ(b.text(states[0]), "float[T,2,N,8]");
  EXPECT_EQ(b.text(states[2]), "float[2,N,8]");
  EXPECT_EQ(b.text(attended[0]), "float[N,S,32]");
  EXPECT_THAT(b.text(attended[1]), ::testing::MatchesRegex("float\\[2,N,4,.*,8\\]"));
  EXPECT_EQ(b.text(embedded[0]), "other[N,S,64]");
  EXPECT_EQ(b.text(embedded[1]), "int32[N]");
  EXPECT_EQ(b.text(embedded[2]), "other[N,S,64]");
  EXPECT_EQ(b.text(last[0]).substr(0, 8), "float[N,") << b.text(last[0]);
  EXPECT_THAT(b.text(last[0]), ::testing::EndsWith(",14,8]"));
  EXPECT_EQ(b.text(first[0]).substr(0, 10), "float[N,8,") << b.text(first[0]);
}

// Contradictions in operators without schemas are errors with the operator's name, too.
TEST(Infer, ForeignOperatorsThatContradictThemselvesFail) {
  const auto fails = [](const char* op, const std::vector<std::vector<const char*>>& shapes,
                        std::vector<Attribute> attributes) {
    Builder b;
    std::vector<ValueId> inputs;
    for (const auto& shape : shapes) inputs.push_back(b.input({shape.begin(), shape.end()}));
    b.nodes(op, inputs, 1, std::move(attributes), "com.microsoft");
    return std::string(b.run().text());
  };
  EXPECT_THAT(fails("NhwcConv", {{"1", "8", "8", "6"}, {"8", "3", "3", "4"}}, {}), ::testing::HasSubstr("6 channels"));
  EXPECT_THAT(fails("NhwcConv", {{"1", "8"}, {"8", "3", "3", "4"}}, {}), ::testing::HasSubstr("rank 2"));
  EXPECT_THAT(fails("DynamicQuantizeLSTM", {{"4", "1", "16"}, {"2", "16", "32"}, {"2", "8", "32"}}, {}),
              ::testing::HasSubstr("directions"));
  EXPECT_THAT(fails("EmbedLayerNormalization", {{"4"}, {"4"}, {"9", "8"}, {"9", "8"}}, {}),
              ::testing::HasSubstr("rank 1"));
}

TEST(Infer, LongChainsTakeLinearTime) {
  Builder b;
  ValueId x = b.input({"N", "64", "56", "W"});
  for (int i = 0; i < 10000; ++i) x = b.node(i % 2 ? "Relu" : "Sigmoid", {x});
  const std::clock_t begin = std::clock();  // processor time: the machine may be busy
  b.expect_ok();
  const std::clock_t time = std::clock() - begin;
  EXPECT_EQ(b.text(x), "float[N,64,56,W]");
  RecordProperty("microseconds", std::to_string(time * 1'000'000 / CLOCKS_PER_SEC));
  EXPECT_LT(time, CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace backplane::ops
