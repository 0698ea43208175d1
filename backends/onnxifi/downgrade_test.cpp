// SPDX-License-Identifier: Apache-2.0
// Tests the steps of the table of older operator forms, and compares the table with the loader's schemas.
#include "downgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "abi/testing/plugin_under_test.h"
#include "rewrite.h"

namespace onnxifi_backend {
namespace {

using backplane::testing::TinyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

// An operator version in loader/ops/schema/schemas.txt.
struct Schema {
  std::set<std::string> attributes;  // including their defaults
  std::string operands;              // counts of inputs and of outputs
  // The type of each input ("in 0") and output ("out 0"): a type, or a variable that may have several.
  std::map<std::string, std::string> types;
  uint32_t in_count = 0, out_count = 0;
  bool deprecated = false;
};

std::map<std::string, std::map<uint32_t, Schema>> read_schemas() {
  std::map<std::string, std::map<uint32_t, Schema>> all;
  std::ifstream in(BACKPLANE_SOURCE_DIR "/loader/ops/schema/schemas.txt");
  Schema* current = nullptr;
  bool is_onnx = false;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "domain") is_onnx = name == "ai.onnx";
    if (!is_onnx) continue;
    if (kind == "op") {
      uint32_t since = 0;
      std::string in_count, out_count, rest;
      words >> since >> in_count >> out_count;
      std::getline(words, rest);
      current = &all[name][since];
      current->operands = in_count + " " + out_count;
      current->deprecated = rest.find("deprecated") != std::string::npos;
    } else if (kind == "attr") {
      current->attributes.insert(line);
    } else if (kind == "in" || kind == "out") {
      uint32_t& count = kind == "in" ? current->in_count : current->out_count;
      words >> current->types[kind + " " + std::to_string(count++)];
    }
  }
  return all;
}

// Whether two operands have one type in the older form, and may have two in the newer form.
bool splits_types(const Schema& newer, const Schema& older) {
  for (const auto& [a, a_type] : older.types) {
    for (const auto& [b, b_type] : older.types) {
      if (a_type != b_type || newer.types.count(a) == 0 || newer.types.count(b) == 0) continue;
      if (newer.types.at(a) != newer.types.at(b)) return true;
    }
  }
  return false;
}

TEST(OlderForms, AreThoseOfTheSchemas) {
  const auto schemas = read_schemas();
  ASSERT_GT(schemas.size(), 150u);
  std::string_view before;
  for (const Forms& each : forms()) {
    EXPECT_LT(before, each.op) << "sorted";
    before = each.op;
    std::vector<uint32_t> wanted, listed;
    for (const auto& [since, schema] : schemas.at(std::string(each.op))) {
      if (schema.deprecated) continue;
      if (since <= kOldestOpset) wanted.clear();
      wanted.insert(wanted.begin(), since);
    }
    for (const uint32_t since : each.since) {
      if (since != 0) listed.push_back(since);
    }
    EXPECT_EQ(listed, wanted) << each.op;
  }
}

TEST(OlderForms, EachChangeOfAttributesOperandsAndEqualTypesHasAStep) {
  const auto schemas = read_schemas();
  std::set<std::pair<std::string_view, uint32_t>> stepped;
  for (const Step& step : steps()) stepped.emplace(step.op, step.since);
  for (const Forms& each : forms()) {
    const auto& of_op = schemas.at(std::string(each.op));
    for (size_t i = 0; i + 1 < std::size(each.since) && each.since[i + 1] != 0; ++i) {
      const Schema &newer = of_op.at(each.since[i]), &older = of_op.at(each.since[i + 1]);
      const bool same =
          newer.attributes == older.attributes && newer.operands == older.operands && !splits_types(newer, older);
      EXPECT_TRUE(same || stepped.count({each.op, each.since[i]}) != 0)
          << each.op << " changed in version " << uint32_t{each.since[i]};
    }
  }
}

// A graph of one node, rewritten for a library that reads `opset`.
class Older {
 public:
  Older(TinyGraph& graph, uint32_t opset) : model_(backplane::sdk::Graph(graph.get())) {
    why = downgrade(model_, opset);
  }
  OnnxNode& node() { return model_.nodes().front(); }
  Ints attribute(std::string_view name) { return node().find(name) == nullptr ? Ints() : node().find(name)->ints; }
  // The elements of a constant input, rewritten or original; empty if the input is not constant.
  Ints input(size_t slot) { return Rewrite(model_, node(), steps().front()).ints(slot).value_or(Ints()); }

  std::string why;  // why the node cannot be rewritten; empty if it can

 private:
  OnnxModel model_;
};

TEST(OlderForms, OfSliceHaveTheBoundsThatTheNewestMeans) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {4, 5});
  graph.output(graph.node("Slice", 13,
                          {x, graph.integers("starts", {-100, -1}), graph.integers("ends", {-1, -100}),
                           graph.integers("axes", {-2, -1}), graph.integers("steps", {1, -2})},
                          {3, 3}));
  Older with_steps(graph, 10);
  EXPECT_EQ(with_steps.why, "");
  EXPECT_THAT(with_steps.input(1), ElementsAre(0, 4));
  EXPECT_THAT(with_steps.input(2), ElementsAre(3, -6));  // -6: before the first of five elements
  EXPECT_THAT(with_steps.input(3), ElementsAre(0, 1));
  EXPECT_THAT(with_steps.input(4), ElementsAre(1, -2));
  EXPECT_THAT(Older(graph, 8).why, HasSubstr("which has no steps"));
  EXPECT_THAT(Older(graph, 13).input(3), ElementsAre(-2, -1));
}

TEST(OlderForms, OfSliceWithoutStepsHaveAttributes) {
  for (const bool is_long : {true, false}) {
    TinyGraph graph;
    const auto ints = [&](const char* name, int64_t value) {
      return is_long ? graph.integers(name, {value}) : graph.integers32(name, {static_cast<int32_t>(value)});
    };
    const uint32_t x = graph.input("x", {4, 5});
    graph.output(graph.node(
        "Slice", 13, {x, ints("starts", -3), ints("ends", is_long ? INT64_MAX : INT32_MAX), ints("axes", -1)}, {4, 3}));
    Older oldest(graph, 7);
    EXPECT_EQ(oldest.why, "");
    EXPECT_THAT(oldest.attribute("starts"), ElementsAre(2));
    EXPECT_THAT(oldest.attribute("ends"), ElementsAre(5));
    EXPECT_THAT(oldest.attribute("axes"), ElementsAre(1));
  }
}

TEST(OlderForms, OfUnsqueezeHaveSortedAxes) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {3});
  graph.output(graph.node("Unsqueeze", 25, {x, graph.integers("axes", {-1, 0})}, {1, 3, 1}));
  EXPECT_THAT(Older(graph, 8).attribute("axes"), ElementsAre(0, 2));
}

// Version 11 of ConvTranspose exchanged the begin and the end of odd padding.
TEST(OlderForms, OfConvTransposeStateThePadding) {
  for (const auto& [how, begin] : {std::pair("SAME_UPPER", 0), std::pair("SAME_LOWER", 1), std::pair("NOTSET", 1)}) {
    TinyGraph graph;
    const uint32_t x = graph.input("x", {1, 1, 4, 4});
    graph.output(graph.node("ConvTranspose", 22, {x, graph.input("w", {1, 1, 3, 2})}, {1, 1, 8, 8}));
    graph.attribute("auto_pad", how);
    graph.attribute("strides", Ints{2, 2});
    if (std::string_view(how) == "NOTSET") graph.attribute("output_shape", Ints{8, 8});
    Older older(graph, 8);
    EXPECT_EQ(older.why, "");
    EXPECT_THAT(older.attribute("pads"), ElementsAre(begin, 0, 1 - begin, 0)) << how;
    EXPECT_EQ(older.node().text("auto_pad", ""), "NOTSET");
    EXPECT_EQ(older.node().find("output_shape"), nullptr);
    EXPECT_EQ(Older(graph, 11).node().text("auto_pad", ""), how);
  }
}

// A pool over one dimension.
struct Pool {
  int64_t extent, kernel;
  Ints pads;
  const char* auto_pad;
  int64_t windows;        // with the stride 3 and `ceil_mode`
  const char* ceil_mode;  // in the older form: "0", "1", or why there is none
};

// Before version 22, pools count windows that begin in the padding after the tensor.
TEST(OlderForms, OfPoolsHaveTheSameWindows) {
  const char* const refused = "which has windows that begin in the padding";
  for (const auto& [op, before] : {std::pair("MaxPool", 12), std::pair("AveragePool", 19), std::pair("LpPool", 18)}) {
    for (const Pool& pool : {
             Pool{7, 1, {0, 2}, "NOTSET", 3, "0"},      // the older form with ceil_mode has 4 windows
             Pool{8, 3, {0, 1}, "NOTSET", 3, "0"},      // the last window ends with the padding
             Pool{8, 3, {0, 0}, "NOTSET", 3, "1"},      // the last window reaches beyond the padding
             Pool{2, 3, {}, "NOTSET", 1, "1"},          // the only window reaches beyond the tensor
             Pool{2, 3, {}, "VALID", 1, "1"},           // the same
             Pool{7, 1, {0, 3}, "NOTSET", 3, refused},  // the older form has 4 windows, with ceil_mode and without
             Pool{6, 2, {}, "NOTSET", 2, "0"},  // the older form with ceil_mode has a third window, beyond the tensor
             Pool{6, 2, {}, "VALID", 2, "0"},   // the same
             Pool{7, 2, {}, "VALID", 3, "1"},   // the last window is partly outside the tensor
             Pool{6, 2, {1, 1}, "VALID", 2, "0"},       // pads that auto_pad overrides
             Pool{6, 2, {1, 1}, "SAME_UPPER", 2, "0"},  // the same
         }) {
      TinyGraph graph;
      graph.output(graph.node(op, 22, {graph.input("x", {1, 1, pool.extent})}, {1, 1, pool.windows}));
      graph.attribute("kernel_shape", Ints{pool.kernel});
      graph.attribute("strides", Ints{3});
      if (!pool.pads.empty()) graph.attribute("pads", pool.pads);
      graph.attribute("auto_pad", pool.auto_pad);
      graph.attribute("ceil_mode", int64_t{1});
      Older older(graph, static_cast<uint32_t>(before));
      const std::string what = std::string(op) + " of " + std::to_string(pool.extent) + ", " + pool.auto_pad;
      if (std::string_view(pool.ceil_mode) == refused) {
        EXPECT_THAT(older.why, HasSubstr(refused)) << what;
        continue;
      }
      EXPECT_EQ(older.why, "") << what;
      EXPECT_EQ(std::to_string(older.node().number("ceil_mode", 0)), pool.ceil_mode) << what;
      EXPECT_EQ(older.node().text("auto_pad", ""),
                std::string_view(pool.auto_pad) == "VALID" ? "NOTSET" : pool.auto_pad);
      const bool keeps = std::string_view(pool.auto_pad) == "NOTSET";
      EXPECT_EQ(older.attribute("pads"), keeps ? pool.pads : Ints()) << what;
      EXPECT_EQ(Older(graph, 22).node().number("ceil_mode", 0), 1);
    }
  }
}

TEST(OlderForms, HaveNoPadsThatAutoPadOverrides) {
  TinyGraph graph;
  graph.output(graph.node("Conv", 22, {graph.input("x", {1, 1, 5}), graph.input("w", {1, 1, 3})}, {1, 1, 3}));
  graph.attribute("pads", Ints{1, 1});
  graph.attribute("auto_pad", "VALID");
  for (const uint32_t opset : {7, 22}) {
    EXPECT_EQ(Older(graph, opset).why, "");
    EXPECT_EQ(Older(graph, opset).node().find("pads"), nullptr) << opset;
  }
}

TEST(OlderForms, OfScattersHaveTheReductionsOfTheirTime) {
  for (const char* const op : {"ScatterElements", "ScatterND"}) {
    for (const char* const reduction : {"none", "add", "max", "min"}) {
      TinyGraph graph;
      const uint32_t x = graph.input("x", {3, 3}), indices = graph.input("indices", {1, 2}, BP_DTYPE_INT64);
      const Ints updates = std::string_view(op) == "ScatterND" ? Ints{1} : Ints{1, 2};
      graph.output(graph.node(op, 18, {x, indices, graph.input("updates", updates)}, {3, 3}));
      graph.attribute("reduction", reduction);
      const std::string why = std::string("has no reduction ") + reduction;
      const bool is_new = std::string_view(reduction) == "max" || std::string_view(reduction) == "min";
      EXPECT_EQ(Older(graph, 18).why, "");
      EXPECT_THAT(Older(graph, 17).why, is_new ? HasSubstr(why) : HasSubstr("")) << op;
      EXPECT_EQ(Older(graph, 17).why.empty(), !is_new) << op << " " << reduction;
      EXPECT_EQ(Older(graph, 13).why.empty(), std::string_view(reduction) == "none") << op << " " << reduction;
    }
  }
}

TEST(OlderForms, OfScatterElementsAreScatter) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {5});
  graph.output(
      graph.node("ScatterElements", 18, {x, graph.integers("indices", {-1, 3}), graph.input("updates", {2})}, {5}));
  graph.attribute("axis", int64_t{-1});
  graph.attribute("reduction", "none");
  Older older(graph, 9);
  EXPECT_EQ(older.why, "");
  EXPECT_EQ(older.node().op, "Scatter");
  EXPECT_EQ(older.node().since, 9u);
  EXPECT_EQ(older.node().find("reduction"), nullptr);
  EXPECT_EQ(older.node().number("axis", -1), 0);
  EXPECT_THAT(older.input(1), ElementsAre(4, 3));
  EXPECT_THAT(Older(graph, 8).why, HasSubstr("Scatter appeared in version 9"));
}

TEST(OlderForms, WithOneTypeForSeveralInputsRefuseTwo) {
  const auto why = [](const char* op, uint32_t since, const std::vector<bp_dtype_t>& dtypes, uint32_t opset) {
    TinyGraph graph;
    std::vector<uint32_t> inputs;
    for (const bp_dtype_t dtype : dtypes)
      inputs.push_back(graph.input("x" + std::to_string(inputs.size()), {3}, dtype));
    graph.output(graph.node(op, since, inputs, {3}));
    return Older(graph, opset).why;
  };
  constexpr bp_dtype_t kF = BP_DTYPE_FLOAT, kH = BP_DTYPE_FLOAT16, kI = BP_DTYPE_INT32;
  EXPECT_THAT(why("Pow", 15, {kF, kI}, 11), HasSubstr("which has one type for both inputs"));
  EXPECT_EQ(why("Pow", 15, {kF, kI}, 12), "");
  EXPECT_EQ(why("Pow", 15, {kF, kF}, 7), "");
  EXPECT_THAT(why("QuantizeLinear", 25, {kH, kF}, 22), HasSubstr("which has one type for both inputs"));
  EXPECT_EQ(why("QuantizeLinear", 25, {kH, kF}, 23), "");
  EXPECT_THAT(why("BatchNormalization", 15, {kH, kF, kF, kF, kF}, 14), HasSubstr("whose scale and bias have"));
  EXPECT_EQ(why("BatchNormalization", 15, {kH, kF, kF, kF, kF}, 15), "");
  EXPECT_EQ(why("BatchNormalization", 15, {kH, kH, kH, kF, kF}, 14), "");
  EXPECT_THAT(why("BatchNormalization", 15, {kH, kH, kH, kF, kF}, 13), HasSubstr("whose mean and variance have"));
  EXPECT_EQ(why("BatchNormalization", 15, {kF, kF, kF, kF, kF}, 7), "");
}

TEST(OlderForms, OfModDivideRealNumbersOnlyByFmod) {
  for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_BFLOAT16, BP_DTYPE_INT32}) {
    for (const int64_t fmod : {0, 1}) {
      TinyGraph graph;
      graph.output(graph.node("Mod", 28, {graph.input("a", {3}, dtype), graph.input("b", {3}, dtype)}, {3}, dtype));
      graph.attribute("fmod", fmod);
      const bool is_new = dtype != BP_DTYPE_INT32 && fmod == 0;
      EXPECT_EQ(Older(graph, 27).why.empty(), !is_new) << dtype << " " << fmod;
      if (is_new) {
        EXPECT_THAT(Older(graph, 27).why, HasSubstr("divides only integers with fmod 0"));
      }
      EXPECT_EQ(Older(graph, 28).why, "");
    }
  }
}

TEST(OlderForms, OfBitShiftHaveAmountsBelowTheNumberOfBits) {
  const auto why = [](std::optional<uint16_t> amount) {
    TinyGraph graph;
    const uint32_t x = graph.input("x", {3}, BP_DTYPE_UINT16);
    const uint32_t by =
        amount ? graph.short_float("by", BP_DTYPE_UINT16, *amount) : graph.input("by", {}, BP_DTYPE_UINT16);
    graph.output(graph.node("BitShift", 28, {x, by}, {3}, BP_DTYPE_UINT16));
    graph.attribute("direction", "LEFT");
    EXPECT_EQ(Older(graph, 28).why, "");
    return Older(graph, 27).why;
  };
  EXPECT_EQ(why(15), "");
  EXPECT_THAT(why(16), HasSubstr("does not define shifts by all bits or more"));
  EXPECT_THAT(why({}), HasSubstr("the amounts must be constants"));
}

TEST(OlderForms, OfSpaceToDepthHaveTheDepthLast) {
  for (const char* const mode : {"DCR", "CRD"}) {
    TinyGraph graph;
    graph.output(graph.node("SpaceToDepth", 28, {graph.input("x", {1, 2, 4, 4})}, {1, 8, 2, 2}));
    graph.attribute("blocksize", int64_t{2});
    graph.attribute("mode", mode);
    Older older(graph, 13);
    EXPECT_EQ(older.why.empty(), mode == std::string_view("DCR"));
    EXPECT_EQ(older.node().find("mode") == nullptr, older.why.empty());
  }
}

TEST(OlderForms, OfAttentionHaveNoWindowsAndOneMask) {
  const auto why = [](int64_t left, int64_t right, int64_t causal, int64_t mask, uint32_t opset) {
    TinyGraph graph;
    std::vector<uint32_t> inputs;
    for (const char* const name : {"q", "k", "v"}) inputs.push_back(graph.input(name, {1, 2, 4, 8}));
    if (mask != 0) inputs.push_back(graph.input("mask", {4, mask}));
    graph.output(graph.node("Attention", 25, inputs, {1, 2, 4, 8}));
    graph.attribute("is_causal", causal);
    graph.attribute("left_window_size", left);
    graph.attribute("right_window_size", right);
    Older older(graph, opset);
    EXPECT_EQ(older.node().find("right_window_size") == nullptr,
              older.why.find("window") == std::string::npos && opset < 25);
    return older.why;
  };
  EXPECT_EQ(why(2, 1, 0, 0, 25), "");
  EXPECT_THAT(why(2, -1, 0, 0, 24), HasSubstr("which has no left_window_size"));
  EXPECT_THAT(why(-1, 0, 0, 0, 24), HasSubstr("which has no right_window_size"));
  EXPECT_EQ(why(-1, -1, 1, 4, 24), "");
  EXPECT_EQ(why(-1, -1, 1, 0, 23), "");
  EXPECT_EQ(why(-1, -1, 0, 4, 23), "");
  EXPECT_THAT(why(-1, -1, 1, 4, 23), HasSubstr("either a mask or is_causal"));
  EXPECT_THAT(why(-1, -1, 0, 3, 23), HasSubstr("whose mask covers every key"));
}

TEST(OlderForms, OfResizeRoundDownWhereTheyEnlargeAndUpWhereTheyShrink) {
  const auto why = [](const std::vector<float>& scales, const char* nearest, uint32_t opset) {
    TinyGraph graph;
    const uint32_t x = graph.input("x", {4, 4});
    graph.output(graph.node("Resize", 19, {x, BP_NONE, graph.weight("scales", {2}, scales)}, {4, 4}));
    graph.attribute("mode", "nearest");
    graph.attribute("coordinate_transformation_mode", "asymmetric");
    graph.attribute("nearest_mode", nearest);
    return Older(graph, opset).why;
  };
  EXPECT_EQ(why({1, 2}, "floor", 7), "");
  EXPECT_THAT(why({1, 2}, "ceil", 10), HasSubstr("which rounds down where it enlarges, and up where it shrinks"));
  EXPECT_EQ(why({1, 0.5f}, "ceil", 10), "");
  EXPECT_THAT(why({1, 0.5f}, "floor", 10), HasSubstr("which rounds down where it enlarges, and up where it shrinks"));
  EXPECT_THAT(why({2, 0.5f}, "floor", 10), HasSubstr("which either enlarges or shrinks"));
  EXPECT_EQ(why({2, 0.5f}, "floor", 11), "");
}

TEST(OlderForms, OfClipHaveTheUpperBoundTwiceWhereTheBoundsContradict) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {3});
  graph.output(graph.node("Clip", 13, {x, graph.weight("low", {}, {2}), graph.weight("high", {}, {1})}, {3}));
  Older oldest(graph, 8);
  EXPECT_THAT(oldest.node().find("min")->floats, ElementsAre(1));
  EXPECT_THAT(oldest.node().find("max")->floats, ElementsAre(1));
}

TEST(OlderForms, OfClipWithIntegersHaveTheUpperBoundTwiceToo) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {3}, BP_DTYPE_INT64);
  graph.output(
      graph.node("Clip", 13, {x, graph.integers("low", {2}), graph.integers("high", {1})}, {3}, BP_DTYPE_INT64));
  EXPECT_THAT(Older(graph, 13).input(1), ElementsAre(2));
  EXPECT_THAT(Older(graph, 12).input(1), ElementsAre(1));
  EXPECT_THAT(Older(graph, 8).why, HasSubstr("whose bounds are constants of type FLOAT"));
}

TEST(OlderForms, OfClipCompareIntegersOf64BitsExactly) {
  constexpr int64_t kTwoTo53 = int64_t{1} << 53;
  for (const auto& [low, high, expected] : {std::tuple(kTwoTo53 + 1, kTwoTo53, kTwoTo53),  // equal as doubles
                                            std::tuple(kTwoTo53, kTwoTo53 + 1, kTwoTo53)}) {
    TinyGraph graph;
    const uint32_t x = graph.input("x", {3}, BP_DTYPE_INT64);
    const std::vector<uint32_t> inputs{x, graph.integers("low", {low}), graph.integers("high", {high})};
    graph.output(graph.node("Clip", 13, inputs, {3}, BP_DTYPE_INT64));
    EXPECT_THAT(Older(graph, 12).input(1), ElementsAre(expected));
  }
}

TEST(OlderForms, OfClipWithShortFloatsHaveTheUpperBoundTwiceToo) {
  const struct {
    bp_dtype_t dtype;
    uint16_t low, high;
    bool contradict;
  } rows[] = {
      {BP_DTYPE_FLOAT16, 0x4000, 0x3C00, true},    // 2, 1
      {BP_DTYPE_FLOAT16, 0x3C00, 0x4000, false},   // 1, 2
      {BP_DTYPE_FLOAT16, 0x0002, 0x0001, true},    // subnormal numbers
      {BP_DTYPE_FLOAT16, 0x0400, 0x03FF, true},    // the least normal number and the greatest subnormal one
      {BP_DTYPE_FLOAT16, 0xBC00, 0xC000, true},    // -1, -2
      {BP_DTYPE_FLOAT16, 0x7C00, 0x7BFF, true},    // infinity, the greatest number
      {BP_DTYPE_FLOAT16, 0x7E00, 0x3C00, false},   // NaN, 1
      {BP_DTYPE_FLOAT16, 0x0000, 0x8000, false},   // 0, -0
      {BP_DTYPE_BFLOAT16, 0x4000, 0x3F80, true},   // 2, 1
      {BP_DTYPE_BFLOAT16, 0x3F80, 0x4000, false},  // 1, 2
      {BP_DTYPE_BFLOAT16, 0x7F80, 0x7F7F, true},   // infinity, the greatest number
      {BP_DTYPE_BFLOAT16, 0x7FC0, 0x3F80, false},  // NaN, 1
      {BP_DTYPE_BFLOAT16, 0x0002, 0x0001, true},   // subnormal numbers
  };
  for (const auto& row : rows) {
    TinyGraph graph;
    const uint32_t x = graph.input("x", {3}, row.dtype);
    const std::vector<uint32_t> inputs{x, graph.short_float("low", row.dtype, row.low),
                                       graph.short_float("high", row.dtype, row.high)};
    graph.output(graph.node("Clip", 13, inputs, {3}, row.dtype));
    Older older(graph, 12);
    EXPECT_EQ(older.node().input(1).value.name(), row.contradict ? "high" : "low") << row.low << " " << row.high;
    EXPECT_EQ(older.node().input(2).value.name(), "high");
  }
}

TEST(OlderForms, AreNotWrittenForANodeWithoutItsFirstOutput) {
  TinyGraph graph;
  graph.output(graph.node("MaxPool", 22, {graph.input("x", {1, 1, 4})}, {1, 1, 2}));
  graph.attribute("ceil_mode", int64_t{1});
  graph.attribute("kernel_shape", Ints{2});
  bp_graph_t omitted = *graph.get();
  std::vector<uint32_t> operands(omitted.operands, omitted.operands + omitted.operand_count);
  operands.back() = BP_NONE;
  omitted.operands = operands.data();
  OnnxModel model{backplane::sdk::Graph(&omitted)};
  EXPECT_THAT(downgrade(model, 10), HasSubstr("output 0 of MaxPool is omitted"));
}

TEST(OlderForms, EachStepIsOfAForm) {
  for (const Step& step : steps()) {
    bool found = false;
    for (const Forms& each : forms())
      found = found || (each.op == step.op &&
                        std::find(std::begin(each.since), std::end(each.since), step.since) != std::end(each.since));
    EXPECT_TRUE(found) << step.op << " " << step.since;
    EXPECT_GT(step.since, kOldestOpset) << step.op;
  }
}

}  // namespace
}  // namespace onnxifi_backend
