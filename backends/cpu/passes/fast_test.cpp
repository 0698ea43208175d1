// SPDX-License-Identifier: Apache-2.0
// Compares small networks, in which many combinations of operators follow each other, with reference mode, which
// neither fuses nodes nor uses blocked tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>

#include "testing/graph_builder.h"
#include "testing/noise.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing::fast {
namespace {

// A network with input "x" and output "y", and perhaps other outputs.
struct Network : GraphBuilder {
  uint32_t seed = 1;
  Network& random(const std::string& name, const Extents& extents) {
    weight<float>(name, BP_DTYPE_FLOAT, extents, noise(product(extents), seed++));
    return *this;
  }
  Network& scalar(const std::string& name, float value) {
    weight<float>(name, BP_DTYPE_FLOAT, {}, {value});
    return *this;
  }
  Network& conv(const std::string& in, const std::string& out, const Extents& weights,
                const Attributes& attributes = {}) {
    random(out + ".w", weights).random(out + ".b", {weights[0]});
    node("Conv", 22, {in, out + ".w", out + ".b"}, {out}, BP_DTYPE_FLOAT, attributes);
    return *this;
  }
  // An NhwcConv with a window of 3x3 that keeps the image's extents.
  Network& nhwc_conv(const std::string& in, const std::string& out, int64_t made, int64_t channels) {
    random(out + ".w", {made, 3, 3, channels}).random(out + ".b", {made});
    node("com.microsoft::NhwcConv", 1, {in, out + ".w", out + ".b"}, {out}, BP_DTYPE_FLOAT,
         {{"pads", Extents{1, 1, 1, 1}}});
    return *this;
  }
  Network& transposed(const std::string& in, const std::string& out, const Extents& perm) {
    node("Transpose", 13, {in}, {out}, BP_DTYPE_FLOAT, {{"perm", perm}});
    return *this;
  }
  Network& normalize(const std::string& in, const std::string& out, int64_t channels) {
    for (const char* part : {".scale", ".bias", ".mean"}) random(out + part, {channels});
    std::vector<float> variance = noise(channels, seed++);
    for (float& v : variance) v = 0.5f + v * v;
    weight<float>(out + ".var", BP_DTYPE_FLOAT, {channels}, variance);
    node("BatchNormalization", 15, {in, out + ".scale", out + ".bias", out + ".mean", out + ".var"}, {out});
    return *this;
  }
  Network& typed(const std::string& name, const Extents& extents) {
    type(name, BP_DTYPE_FLOAT, extents);
    return *this;
  }
};

const Attributes kSame3{{"pads", Extents{1, 1, 1, 1}}};
const Attributes kPool3{{"kernel_shape", Extents{3, 3}}, {"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{2, 2}}};

Attributes with(Attributes attributes, const std::string& name, AttributeValue value) {
  attributes[name] = std::move(value);
  return attributes;
}

// Adds "j" with these extents: the result of a convolution of "x", with its channels shuffled.
void shuffled(Network& n, const Extents& extents) {
  const Extents parts{extents[0], 4, extents[1] / 4, extents[2], extents[3]};
  n.conv("x", "c", {extents[1], 16, 1, 1});
  n.typed("c", extents).typed("p", parts).typed("j", extents);
  n.weight<int64_t>("apart", BP_DTYPE_INT64, {5}, parts);
  n.weight<int64_t>("whole", BP_DTYPE_INT64, {4}, extents);
  n.node("Reshape", 13, {"c", "apart"}, {"p"});
  n.node("Transpose", 13, {"p"}, {"t"}, BP_DTYPE_FLOAT, {{"perm", Extents{0, 2, 1, 3, 4}}});
  n.node("Reshape", 13, {"t", "whole"}, {"j"});
}

const Extents kToLast{0, 2, 3, 1}, kToFirst{0, 3, 1, 2};

struct Case {
  const char* name;
  Extents input;
  std::function<void(Network&)> build;
};

const Case kCases[] = {
    {"NormalizationAndActivationAfterConv",
     {2, 20, 9, 7},
     [](Network& n) {
       n.conv("x", "c", {37, 20, 3, 3}, kSame3);
       n.typed("c", {2, 37, 9, 7});
       n.normalize("c", "b", 37);
       n.node("LeakyRelu", 16, {"b"}, {"y"}).output("y");
     }},
    {"ChannelConstantsAfterConv",
     {1, 16, 6, 6},
     [](Network& n) {
       n.conv("x", "c", {24, 16, 1, 1});
       n.typed("c", {1, 24, 6, 6});
       n.random("m", {24, 1, 1});
       n.random("a", {1, 24, 1, 1});
       n.scalar("two", 2);
       n.scalar("low", -0.5f);
       n.scalar("high", 0.75f);
       n.node("Mul", 14, {"c", "m"}, {"c1"})
           .node("Add", 14, {"a", "c1"}, {"c2"})
           .node("Sub", 14, {"two", "c2"}, {"c3"});
       n.node("Div", 14, {"c3", "two"}, {"c4"}).node("Clip", 13, {"c4", "low", "high"}, {"y"}).output("y");
     }},
    {"AdditionAndReluAfterConv",
     {1, 32, 14, 14},
     [](Network& n) {
       n.conv("x", "a", {32, 32, 3, 3}, kSame3).node("Relu", 14, {"a"}, {"r"});
       n.conv("r", "b", {32, 32, 3, 3}, kSame3);
       n.typed("b", {1, 32, 14, 14});
       n.typed("r", {1, 32, 14, 14});
       n.node("Add", 14, {"b", "r"}, {"s"}).node("Relu", 14, {"s"}, {"y"}).output("y");
     }},
    {"AdditionOfWhatIsReadAgain",
     {1, 32, 8, 8},
     [](Network& n) {
       n.typed("a", {1, 32, 8, 8});
       n.typed("b", {1, 32, 8, 8});
       n.conv("x", "a", {32, 32, 1, 1});
       n.conv("a", "b", {32, 32, 1, 1});
       n.node("Sum", 13, {"a", "b"}, {"s"}).node("Mul", 14, {"s", "a"}, {"y"}).output("y");
     }},
    {"AdditionThatBroadcasts",
     {1, 16, 5, 5},
     [](Network& n) {
       n.conv("x", "a", {16, 16, 1, 1}).node("GlobalAveragePool", 22, {"x"}, {"g"});
       n.node("Add", 14, {"a", "g"}, {"y"}).output("y");
     }},
    {"HardSwishInParts",
     {1, 3, 16, 16},
     [](Network& n) {
       n.conv("x", "c", {24, 3, 3, 3}, with(kSame3, "strides", Extents{2, 2}));
       n.scalar("3", 3);
       n.scalar("0", 0);
       n.scalar("6", 6);
       n.node("Add", 14, {"c", "3"}, {"a"}).node("Clip", 13, {"a", "0", "6"}, {"k"});
       n.node("Mul", 14, {"c", "k"}, {"m"}).node("Div", 14, {"m", "6"}, {"h"});
       n.conv("h", "d", {24, 1, 3, 3}, with(kSame3, "group", int64_t{24}));
       n.node("Sigmoid", 13, {"d"}, {"s"}).node("Mul", 14, {"s", "d"}, {"y"}).output("y");
     }},
    {"GateForEachChannel",
     {2, 24, 6, 6},
     [](Network& n) {
       n.conv("x", "c", {40, 24, 1, 1}).node("GlobalAveragePool", 22, {"c"}, {"g"});
       n.conv("g", "s", {40, 40, 1, 1})
           .node("HardSigmoid", 22, {"s"}, {"h"})
           .node("Mul", 14, {"c", "h"}, {"y"})
           .output("y");
     }},
    {"ThinGroups",
     {1, 136, 7, 7},
     [](Network& n) {
       n.conv("x", "c", {136, 34, 1, 1}, {{"group", int64_t{4}}}).node("Relu", 14, {"c"}, {"r"});
       n.conv("r", "y", {68, 4, 3, 3}, with(kSame3, "group", int64_t{34})).output("y");
     }},
    {"PoolsAndConcat",
     {1, 16, 9, 9},
     [](Network& n) {
       n.conv("x", "c", {32, 16, 3, 3}, kSame3).node("MaxPool", 22, {"c"}, {"m"}, BP_DTYPE_FLOAT, kPool3);
       n.node("AveragePool", 22, {"c"}, {"a"}, BP_DTYPE_FLOAT, kPool3);
       n.node("AveragePool", 22, {"c"}, {"p"}, BP_DTYPE_FLOAT, with(kPool3, "count_include_pad", int64_t{1}));
       n.conv("c", "d", {21, 32, 3, 3}, with(kSame3, "strides", Extents{2, 2}));
       n.node("Concat", 13, {"m", "a", "p", "d"}, {"j"}, BP_DTYPE_FLOAT, {{"axis", int64_t{1}}});
       n.normalize("j", "b", 117).node("Relu", 14, {"b"}, {"r"});
       n.conv("r", "y", {16, 117, 1, 1}).output("y");
     }},
    {"ConcatOfPartsOfBlocks",
     {1, 16, 5, 5},
     [](Network& n) {
       n.conv("x", "a", {5, 16, 1, 1});
       n.conv("x", "b", {9, 16, 1, 1});
       n.node("Concat", 13, {"a", "b"}, {"y"}, BP_DTYPE_FLOAT, {{"axis", int64_t{1}}}).output("y").output("b");
     }},
    {"NormalizationOverChannels",
     {1, 16, 5, 6},
     [](Network& n) {
       n.conv("x", "c", {27, 16, 1, 1});
       n.node("LRN", 13, {"c"}, {"l"}, BP_DTYPE_FLOAT, {{"size", int64_t{5}}, {"alpha", 0.5f}}).output("l");
       n.node("Exp", 13, {"c"}, {"e"}).node("Div", 14, {"l", "e"}, {"y"}).output("y");
     }},
    {"NormalizationOfOnlyItsOwnChannels",  // without a bias, channels beyond the last would be divided by 0
     {1, 16, 5, 6},
     [](Network& n) {
       n.conv("x", "c", {20, 16, 1, 1});
       n.node("LRN", 13, {"c"}, {"l"}, BP_DTYPE_FLOAT, {{"size", int64_t{5}}, {"alpha", 0.5f}, {"bias", 0.0f}});
       n.conv("l", "y", {16, 20, 3, 3}, kSame3).output("y");
     }},
    {"LimitsInReverseOrder",  // all results are the upper limit
     {1, 16, 5, 5},
     [](Network& n) {
       n.scalar("low", 0.5f).scalar("high", -0.25f);
       n.conv("x", "c", {20, 16, 3, 3}, kSame3).node("Clip", 13, {"c", "low", "high"}, {"y"}).output("y");
       n.conv("x", "d", {16, 1, 3, 3}, with(kSame3, "group", int64_t{16}));
       n.node("Clip", 13, {"d", "low", "high"}, {"z"}).output("z");
     }},
    {"TwoActivationsOfOneAlgorithm",  // convolutions of few channels, of each channel alone, and of many channels
     {1, 20, 5, 5},
     [](Network& n) {
       n.scalar("low", -2).scalar("high", 0.7f).scalar("floor", -0.92f).scalar("roof", -0.89f);
       n.conv("x", "a", {3, 20, 1, 1}, {}).typed("a", {1, 3, 5, 5});
       n.conv("a", "c", {8, 3, 3, 3}, kSame3).node("Clip", 13, {"c", "low", "high"}, {"d"});
       n.node("Clip", 13, {"d", "floor", "roof"}, {"y"}).output("y");
       n.conv("x", "e", {20, 1, 3, 3}, with(kSame3, "group", int64_t{20}));
       n.node("LeakyRelu", 16, {"e"}, {"f"}, BP_DTYPE_FLOAT, {{"alpha", 0.5f}});
       n.node("LeakyRelu", 16, {"f"}, {"z"}, BP_DTYPE_FLOAT, {{"alpha", -0.25f}}).output("z");
       n.conv("x", "g", {32, 20, 3, 3}, kSame3).node("HardSigmoid", 6, {"g"}, {"h"});
       n.node("Clip", 13, {"h", "low", "high"}, {"w"}).output("w");
     }},
    {"ShuffledChannels",
     {1, 16, 5, 5},
     [](Network& n) {
       shuffled(n, {1, 36, 5, 5});
       n.conv("j", "y", {36, 1, 3, 3}, with(kSame3, "group", int64_t{36}));
       n.output("y");
     }},
    {"ShuffleBetweenGroups",  // the shuffle moves past the depthwise convolution into the next one
     {2, 16, 5, 6},
     [](Network& n) {
       shuffled(n, {2, 36, 5, 6});
       n.conv("j", "d", {36, 1, 3, 3}, with(kSame3, "group", int64_t{36}));
       n.typed("d", {2, 36, 5, 6}).typed("g", {2, 44, 5, 6});
       n.normalize("d", "b", 36);
       n.conv("b", "g", {44, 9, 1, 1}, {{"group", int64_t{4}}}).node("Relu", 14, {"g"}, {"y"}).output("y");
     }},
    {"ShuffleBeforeFewPositions",  // too few positions for tiles
     {1, 16, 2, 1},
     [](Network& n) {
       shuffled(n, {1, 36, 2, 1});
       n.conv("j", "d", {36, 1, 3, 3}, with(kSame3, "group", int64_t{36}));
       n.typed("d", {1, 36, 2, 1});
       n.conv("d", "y", {36, 9, 3, 3}, with(kSame3, "group", int64_t{4})).output("y");
     }},
    {"ShuffleReadTwice",
     {1, 16, 5, 5},
     [](Network& n) {
       shuffled(n, {1, 36, 5, 5});
       n.conv("j", "d", {36, 1, 3, 3}, with(kSame3, "group", int64_t{36}));
       n.typed("d", {1, 36, 5, 5}).typed("g", {1, 36, 5, 5});
       n.conv("d", "g", {36, 9, 1, 1}, {{"group", int64_t{4}}});
       n.node("Sum", 13, {"g", "j", "d"}, {"y"}).output("y");
     }},
    {"OutputsInTheMiddle",
     {1, 16, 5, 5},
     [](Network& n) {
       n.conv("x", "c", {16, 16, 3, 3}, kSame3).node("Relu", 14, {"c"}, {"r"}).node("Neg", 13, {"r"}, {"y"});
       n.output("c").output("y").output("r");
     }},
    {"OneAndThreeDimensions",
     {1, 6, 12},
     [](Network& n) {
       n.conv("x", "c", {20, 6, 3})
           .node("Relu", 14, {"c"}, {"r"})
           .weight<int64_t>("s", BP_DTYPE_INT64, {5}, {1, 20, 2, 1, 5});
       n.node("Reshape", 13, {"r", "s"}, {"v"});
       n.conv("v", "y", {9, 20, 2, 1, 3}).output("y");
     }},
    {"DenseLayers",
     {2, 16, 3, 3},
     [](Network& n) {
       n.conv("x", "c", {20, 16, 1, 1}).node("Flatten", 13, {"c"}, {"f"});
       n.random("w", {70, 180});
       n.random("b", {70});
       n.random("v", {70, 33})
           .node("Gemm", 13, {"f", "w", "b"}, {"g"}, BP_DTYPE_FLOAT, {{"transB", int64_t{1}}, {"alpha", 0.5f}});
       n.node("Relu", 14, {"g"}, {"r"}).node("Gemm", 13, {"r", "v"}, {"h"}).node("Tanh", 13, {"h"}, {"y"}).output("y");
     }},
    {"GateOfSomethingElse",
     {2, 16},
     [](Network& n) {
       n.random("w", {16, 24}).scalar("half", 0.5f).weight<int64_t>("wide", BP_DTYPE_INT64, {3}, {2, 2, 24});
       n.node("Gemm", 13, {"x", "w"}, {"g"}).node("Sigmoid", 13, {"g"}, {"s"}).node("Mul", 14, {"s", "half"}, {"y"});
       n.node("Expand", 13, {"g", "wide"}, {"e"}).output("y").output("e");
     }},
    {"ConvolutionsInTiles",
     {2, 40, 17, 23},
     [](Network& n) {
       const Attributes stride2{{"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{2, 2}}};
       n.conv("x", "a", {72, 40, 3, 3}, stride2).node("Relu", 14, {"a"}, {"ar"});
       n.conv("ar", "b", {68, 18, 1, 1}, {{"group", int64_t{4}}}).node("Tanh", 13, {"b"}, {"bt"});
       n.conv("bt", "c", {52, 17, 3, 2}, {{"group", int64_t{4}}, {"pads", Extents{2, 0, 1, 1}}});
       n.conv("x", "d", {52, 40, 1, 1}, {{"strides", Extents{2, 2}}});
       n.conv("bt", "e", {52, 68, 3, 3}, {{"dilations", Extents{1, 2}}, {"pads", Extents{0, 1, 2, 1}}});
       n.conv("x", "p", {20, 40, 1, 1}, {{"strides", Extents{2, 2}}, {"pads", Extents{8, 11, 8, 11}}}).output("p");
       n.typed("c", {2, 52, 10, 12}).typed("d", {2, 52, 9, 12}).typed("e", {2, 52, 9, 10});
       n.node("Elu", 6, {"d"}, {"y"}).output("y").output("e").output("c");
     }},
    {"ConvolutionsOfManyChannels",
     {1, 1700, 5, 7},
     [](Network& n) {
       n.conv("x", "a", {1700, 100, 1, 1}, {{"group", int64_t{17}}});
       n.conv("x", "b", {1700, 1700, 1, 1});
       n.typed("a", {1, 1700, 5, 7}).typed("b", {1, 1700, 5, 7}).typed("s", {1, 1700, 5, 7});
       n.node("Add", 14, {"b", "a"}, {"s"}).node("Relu", 14, {"s"}, {"y"}).output("y");
     }},
    {"GemmOfManyRows",
     {9, 40},
     [](Network& n) {
       n.random("v", {48, 40}).random("b", {48}).random("w", {48, 32}).random("c", {1, 32});
       n.node("Gemm", 13, {"x", "v", "b"}, {"g"}, BP_DTYPE_FLOAT, {{"transB", int64_t{1}}});
       n.node("Gelu", 20, {"g"}, {"r"})
           .node("Gemm", 13, {"r", "w", "c"}, {"h"})
           .node("Relu", 14, {"h"}, {"y"})
           .output("y");
     }},
    {"ConcatWithoutCopies",
     {1, 32, 6, 7},
     [](Network& n) {
       auto concat = [&](const std::vector<std::string>& parts, const std::string& whole, int64_t axis = 1) {
         n.node("Concat", 13, parts, {whole}, BP_DTYPE_FLOAT, {{"axis", axis}});
       };
       n.conv("x", "a", {32, 32, 1, 1}).conv("x", "b", {16, 32, 3, 3}, kSame3);
       concat({"a", "b"}, "c");
       n.node("Relu", 14, {"a"}, {"h"}).output("h");  // would overwrite a in place, but a is part of c
       n.conv("c", "d", {32, 48, 1, 1});
       concat({"c", "d"}, "e");
       concat({"d", "d"}, "twice");
       n.node("Sigmoid", 13, {"e"}, {"y"}).output("y").output("twice");
       n.conv("c", "f", {16, 48, 1, 1}).output("f");
       n.conv("c", "g", {16, 48, 1, 1});
       concat({"f", "g"}, "whole");  // f is an output and has its own memory
       n.node("Neg", 13, {"g"}, {"k"}).node("Exp", 13, {"g"}, {"l"});
       concat({"k", "l"}, "rows", 0);
       n.output("whole").output("rows");
     }},
    {"ProductsWithKnownMatrices",
     {2, 150, 40},
     [](Network& n) {
       n.typed("x", {2, 150, 40});
       for (const char* name : {"p", "pb", "ps", "q", "qb", "sum"}) n.typed(name, {2, 150, 200});
       n.random("w", {40, 200}).random("v", {40, 200}).random("b", {200}).random("c", {200}).scalar("two", 2);
       n.node("MatMul", 13, {"x", "w"}, {"p"})
           .node("Add", 14, {"p", "b"}, {"pb"})
           .node("Mul", 14, {"pb", "two"}, {"ps"});
       n.node("MatMul", 13, {"x", "v"}, {"q"}).node("Add", 14, {"c", "q"}, {"qb"});
       n.node("Add", 14, {"qb", "ps"}, {"sum"}).node("Relu", 14, {"sum"}, {"y"}).output("y").output("ps");
     }},
    {"FewRowsTimesAKnownMatrix",
     {1, 3, 40},
     [](Network& n) {
       n.typed("p", {1, 3, 70}).typed("r", {1, 3, 70});
       n.random("w", {40, 70}).random("b", {70}).node("MatMul", 13, {"x", "w"}, {"p"});
       n.node("Add", 14, {"p", "b"}, {"r"}).node("Sigmoid", 13, {"r"}, {"y"}).output("y");
     }},
    {"GeluInParts",
     {6, 32},
     [](Network& n) {
       n.scalar("root", std::sqrt(2.0f)).scalar("one", 1).scalar("half", 0.5f).scalar("three", 3);
       n.scalar("small", 0.044715f).scalar("factor", std::sqrt(2 / std::numbers::pi_v<float>));
       auto product = [&](const std::string& in, const std::string& out) {
         n.typed(out, {6, 32}).random(out + ".w", {32, 32}).node("MatMul", 13, {in, out + ".w"}, {out});
       };
       auto erf = [&](const std::string& x, const std::string& out) {
         n.node("Div", 14, {x, "root"}, {x + ".d"}).node("Erf", 13, {x + ".d"}, {x + ".e"});
         n.node("Add", 14, {x + ".e", "one"}, {out});
       };
       product("x", "a");
       erf("a", "a1");
       n.node("Mul", 14, {"a", "a1"}, {"a2"}).node("Mul", 14, {"a2", "half"}, {"ga"});
       product("ga", "b");
       erf("b", "b1");
       n.node("Mul", 14, {"b", "half"}, {"bh"}).node("Mul", 14, {"bh", "b1"}, {"gb"});
       product("gb", "c");
       n.node("Pow", 15, {"c", "three"}, {"c1"}).node("Mul", 14, {"c1", "small"}, {"c2"});
       n.node("Add", 14, {"c", "c2"}, {"c3"})
           .node("Mul", 14, {"c3", "factor"}, {"c4"})
           .node("Tanh", 13, {"c4"}, {"c5"});
       n.node("Add", 14, {"c5", "one"}, {"c6"}).node("Mul", 14, {"c", "half"}, {"ch"});
       n.node("Mul", 14, {"ch", "c6"}, {"y"}).output("y");
     }},
    {"LayerNormInParts",
     {3, 5, 37},
     [](Network& n) {
       n.typed("x", {3, 5, 37}).scalar("two", 2).scalar("epsilon", 0.01f).random("scale", {37}).random("bias", {37});
       n.weight<int64_t>("last", BP_DTYPE_INT64, {1}, {-1});
       n.node("ReduceMean", 18, {"x", "last"}, {"mean"}).node("Sub", 14, {"x", "mean"}, {"d"});
       n.node("Pow", 15, {"d", "two"}, {"p"}).node("ReduceMean", 18, {"p", "last"}, {"v"});
       n.node("Add", 14, {"v", "epsilon"}, {"e"}).node("Sqrt", 13, {"e"}, {"s"}).node("Div", 14, {"d", "s"}, {"q"});
       n.node("Mul", 14, {"q", "scale"}, {"m"}).node("Add", 14, {"m", "bias"}, {"y"}).output("y");
     }},
    {"AttentionInParts",
     {2, 150, 24},
     [](Network& n) {
       n.random("mask", {2, 1, 1, 150}).scalar("root", 2).scalar("factor", 0.5f);
       n.weight<int64_t>("apart", BP_DTYPE_INT64, {4}, {2, 150, 3, 8});
       auto heads = [&](const char* out, const Extents& perm, const Extents& extents) {
         const std::string name = out;
         n.typed(name, extents).typed(name + ".r", {2, 150, 3, 8});
         n.random(name + ".w", {24, 24}).node("MatMul", 13, {"x", name + ".w"}, {name + ".p"});
         n.node("Reshape", 13, {name + ".p", "apart"}, {name + ".r"});
         n.node("Transpose", 13, {name + ".r"}, {name}, BP_DTYPE_FLOAT, {{"perm", perm}});
       };
       heads("q", {0, 2, 1, 3}, {2, 3, 150, 8});
       heads("k", {0, 2, 3, 1}, {2, 3, 8, 150});
       heads("v", {0, 2, 1, 3}, {2, 3, 150, 8});
       for (const char* name : {"s", "d", "a", "w"}) n.typed(name, {2, 3, 150, 150});
       n.typed("qs", {2, 3, 150, 8}).typed("m", {2, 3, 150, 8});
       n.node("Mul", 14, {"q", "factor"}, {"qs"}).node("MatMul", 13, {"qs", "k"}, {"s"});
       n.node("Div", 14, {"s", "root"}, {"d"}).node("Add", 14, {"d", "mask"}, {"a"});
       n.node("Softmax", 13, {"a"}, {"w"}).node("MatMul", 13, {"w", "v"}, {"m"});
       n.node("Transpose", 13, {"m"}, {"y"}, BP_DTYPE_FLOAT, {{"perm", Extents{0, 2, 1, 3}}}).output("y");
     }},
    {"AttentionOfHeadsOfOneElement",  // the transposed keys are one row, whose stride is 1
     {2, 3, 7, 1},
     [](Network& n) {
       n.typed("x", {2, 3, 7, 1}).typed("k", {2, 3, 1, 7}).typed("v", {2, 3, 7, 1});
       n.typed("s", {2, 3, 7, 7}).typed("w", {2, 3, 7, 7}).scalar("two", 2);
       n.node("Mul", 14, {"x", "two"}, {"v"});
       n.node("Transpose", 13, {"x"}, {"k"}, BP_DTYPE_FLOAT, {{"perm", Extents{0, 1, 3, 2}}});
       n.node("MatMul", 13, {"x", "k"}, {"s"}).node("Softmax", 13, {"s"}, {"w"});
       n.node("MatMul", 13, {"w", "v"}, {"y"}).output("y");
     }},
    {"AttentionWhoseKeysAreAnOutput",
     {1, 2, 9, 8},
     [](Network& n) {
       n.typed("x", {1, 2, 9, 8}).typed("k", {1, 2, 8, 9}).typed("s", {1, 2, 9, 9}).typed("w", {1, 2, 9, 9});
       n.node("Transpose", 13, {"x"}, {"k"}, BP_DTYPE_FLOAT, {{"perm", Extents{0, 1, 3, 2}}}).output("k");
       n.node("MatMul", 13, {"x", "k"}, {"s"}).node("Softmax", 13, {"s"}, {"w"});
       n.node("MatMul", 13, {"w", "x"}, {"y"}).output("y");
     }},
    {"TransposesAroundNhwcConv",
     {2, 16, 9, 7},
     [](Network& n) {
       n.transposed("x", "x.last", kToLast).nhwc_conv("x.last", "a.last", 24, 16).transposed("a.last", "a", kToFirst);
       n.node("Relu", 14, {"a"}, {"r"});
       n.transposed("r", "r.last", kToLast).nhwc_conv("r.last", "b.last", 24, 24).transposed("b.last", "b", kToFirst);
       n.typed("b", {2, 24, 9, 7}).typed("r", {2, 24, 9, 7});
       n.node("Add", 14, {"b", "r"}, {"s"}).node("Relu", 14, {"s"}, {"y"}).output("y");
     }},
    {"TransposeBeforeNhwcConvAlone",
     {1, 19, 8, 8},
     [](Network& n) {
       n.transposed("x", "x.last", kToLast).nhwc_conv("x.last", "a", 17, 19).node("Sigmoid", 13, {"a"}, {"y"});
       n.output("y");
     }},
    {"TransposeAfterNhwcConvAlone",
     {1, 8, 8, 19},
     [](Network& n) {
       n.nhwc_conv("x", "a.last", 17, 19).transposed("a.last", "a", kToFirst).node("Relu", 14, {"a"}, {"y"});
       n.output("y");
     }},
    {"TransposesThatOthersRead",
     {1, 16, 6, 5},
     [](Network& n) {
       n.transposed("x", "x.last", kToLast).nhwc_conv("x.last", "a.last", 16, 16);
       n.transposed("a.last", "a", kToFirst).node("Relu", 14, {"a"}, {"y"});
       n.node("Add", 14, {"x.last", "a.last"}, {"z"}).output("y").output("z");
     }},
    {"OtherTransposesAroundNhwcConv",
     {1, 16, 6, 6},
     [](Network& n) {
       n.transposed("x", "x.last", {0, 3, 2, 1}).nhwc_conv("x.last", "a.last", 16, 16);
       n.transposed("a.last", "y", {0, 3, 2, 1}).output("y");
     }},
    {"NhwcConvsWithConstantsAndSums",
     {2, 6, 5, 16},
     [](Network& n) {
       n.nhwc_conv("x", "a", 24, 16).random("m", {24}).node("Mul", 14, {"a", "m"}, {"am"});
       n.node("Relu", 14, {"am"}, {"r"});
       n.nhwc_conv("r", "b", 24, 24);
       n.typed("a", {2, 6, 5, 24}).typed("b", {2, 6, 5, 24}).typed("r", {2, 6, 5, 24});
       n.node("Add", 14, {"b", "r"}, {"s"}).node("Relu", 14, {"s"}, {"y"}).output("y");
     }},
};

class Fast : public ::testing::TestWithParam<Case> {};

Outcome run(const Case& test, bool reference, const std::string& threads) {
  setenv("BACKPLANE_CPU_REFERENCE", reference ? "1" : "0", 1);
  Plugin plugin(threads);
  Network network;
  network.input("x", BP_DTYPE_FLOAT, test.input);
  test.build(network);
  Compiled program(plugin, network.graph());
  return program.run({HostTensor::of(BP_DTYPE_FLOAT, test.input, noise(product(test.input), 99))});
}

TEST_P(Fast, MatchesTheReference) {
  Outcome expected = run(GetParam(), true, "1");
  ASSERT_EQ(expected.status, BP_OK) << expected.text;
  for (const char* threads : {"1", "2", "3"}) {
    Outcome seen = run(GetParam(), false, threads);
    ASSERT_EQ(seen.status, BP_OK) << seen.text;
    ASSERT_EQ(seen.outputs.size(), expected.outputs.size());
    for (size_t o = 0; o < seen.outputs.size(); ++o) {
      ASSERT_EQ(seen.outputs[o].extents, expected.outputs[o].extents);
      std::vector<float> a = seen.outputs[o].as<float>(), b = expected.outputs[o].as<float>();
      float largest = 0;
      for (float value : b) largest = std::max(largest, std::fabs(value));
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-4f * largest) << "output " << o << " [" << i << "]";
    }
  }
}

// A constant [1,1,1,1] adds a dimension to a product of rank 3, which the fused activation would not.
TEST(FastGelu, KeepsDimensionsThatAConstantAdds) {
  const Case test{"", {2, 3, 8}, [](Network& n) {
                    n.random("w", {8, 8}).typed("m", {2, 3, 8}).scalar("root", 1.41421356f).scalar("one", 1);
                    n.weight<float>("half", BP_DTYPE_FLOAT, {1, 1, 1, 1}, {0.5f});
                    n.node("MatMul", 13, {"x", "w"}, {"m"}).node("Div", 14, {"m", "root"}, {"d"});
                    n.node("Erf", 13, {"d"}, {"e"}).node("Add", 14, {"e", "one"}, {"a"});
                    n.node("Mul", 14, {"m", "a"}, {"p"}).node("Mul", 14, {"p", "half"}, {"y"}).output("y");
                  }};
  const Outcome seen = run(test, false, "1");
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  EXPECT_EQ(seen.outputs[0].extents, (Extents{1, 2, 3, 8}));
}

// A much larger constant must be added to the finished sum. If the sum began with the constant, each partial sum would
// be rounded at the constant's magnitude.
TEST(FastBias, IsAddedLast) {
  const Case test{
      "", {1, 48, 8, 8}, [](Network& n) {
        n.typed("c", {1, 48, 8, 8}).typed("d", {1, 48, 8, 8}).typed("z", {1, 48, 8, 8});
        n.random("c.w", {48, 48, 3, 3}).random("d.w", {48, 1, 3, 3});
        n.weight<float>("large", BP_DTYPE_FLOAT, {48, 1, 1}, std::vector<float>(48, 5000.0f));
        n.node("Conv", 22, {"x", "c.w"}, {"c"}, BP_DTYPE_FLOAT, kSame3).node("Add", 14, {"c", "large"}, {"y"});
        n.node("Conv", 22, {"x", "d.w"}, {"d"}, BP_DTYPE_FLOAT, with(kSame3, "group", int64_t{48}));
        n.node("Add", 14, {"d", "large"}, {"z"}).output("y").output("z");
      }};
  const Outcome expected = run(test, true, "1"), seen = run(test, false, "2");
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  ASSERT_EQ(seen.outputs.size(), 2u);
  for (size_t o = 0; o < 2; ++o) {
    const std::vector<float> a = seen.outputs[o].as<float>(), b = expected.outputs[o].as<float>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(std::fabs(a[i] - b[i]), std::nextafter(b[i], 1e9f) - b[i]) << "output " << o << " [" << i << "]";
  }
}

// If fused, the factor 1/0 would multiply the bias too, and an infinite sum and an infinite bias could cancel to NaN.
TEST(FastQuotient, OfZeroIsInfinite) {
  const Case test{"", {1, 48, 8, 8}, [](Network& n) {
                    n.typed("c", {1, 48, 8, 8}).typed("d", {1, 48, 8, 8}).scalar("zero", 0);
                    n.conv("x", "c", {48, 48, 3, 3}, kSame3).node("Div", 14, {"c", "zero"}, {"y"}).output("y");
                    n.random("scale", {48}).random("bias", {48}).random("mean", {48});
                    n.weight<float>("var", BP_DTYPE_FLOAT, {48}, std::vector<float>(48, 0.0f));
                    n.conv("x", "d", {48, 48, 3, 3}, kSame3);
                    n.node("BatchNormalization", 15, {"d", "scale", "bias", "mean", "var"}, {"z"}, BP_DTYPE_FLOAT,
                           {{"epsilon", 0.0f}});
                    n.output("z");
                  }};
  const Outcome expected = run(test, true, "1"), seen = run(test, false, "1");
  ASSERT_EQ(seen.status, BP_OK) << seen.text;
  for (size_t o = 0; o < 2; ++o) {
    const std::vector<float> a = seen.outputs[o].as<float>(), b = expected.outputs[o].as<float>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << "output " << o << ": " << a[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Fast, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backplane::cpu::testing::fast
