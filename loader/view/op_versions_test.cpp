// SPDX-License-Identifier: Apache-2.0
// Tests which nodes plugins with older operator sets are shown: those that the older form can express.
#include "view/op_versions.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "import/import.h"
#include "ops/schema/schema.h"
#include "ops/upgrade/upgrade.h"
#include "testing/onnx_writer.h"
#include "view/view.h"

namespace backplane::model {
namespace {

using namespace testing::onnx;

constexpr uint32_t kFloat = BP_DTYPE_FLOAT, kInt64 = BP_DTYPE_INT64;
constexpr uint32_t kNewest = 28;

struct Operand {
  uint32_t dtype;
  std::vector<Dim> dims;
};

// A model with one node, and the version of ONNX that it is written for.
struct Sample {
  std::string_view op;
  std::vector<Operand> inputs;
  Texts attributes = {};
  std::vector<std::vector<int64_t>> constants = {};  // more inputs, lists of int64
  int64_t written = kNewest;
  size_t outputs = 1;
  std::string_view domain = "";
  std::vector<uint8_t> bytes = {};  // one more input, a uint8 constant
};

// The view that a plugin with `opset` of the domain sees; null if the model is invalid. The node is the last of the
// model.
std::shared_ptr<const View> seen(const Sample& sample, uint32_t opset) {
  Texts names, values, weights, made, ends;
  for (const Operand& operand : sample.inputs) {
    names.push_back("x" + std::to_string(names.size()));
    values.push_back(tensor_value(names.back(), operand.dtype, operand.dims));
  }
  for (const std::vector<int64_t>& list : sample.constants) {
    names.push_back("w" + std::to_string(names.size()));
    weights.push_back(tensor(names.back(), kInt64, {static_cast<int64_t>(list.size())}, list));
  }
  if (!sample.bytes.empty()) {
    names.push_back("w" + std::to_string(names.size()));
    weights.push_back(tensor(names.back(), BP_DTYPE_UINT8, {static_cast<int64_t>(sample.bytes.size())}, sample.bytes));
  }
  for (size_t i = 0; i < sample.outputs; ++i) {
    made.push_back("y" + std::to_string(i));
    ends.push_back(value(made.back()));
  }
  const bool is_ml = !sample.domain.empty();
  const std::string bytes =
      model_bytes({{"", is_ml ? int64_t{kNewest} : sample.written}, {"ai.onnx.ml", is_ml ? sample.written : 5}},
                  graph({node(sample.op, names, made, sample.attributes, sample.domain)}, values, ends, weights));
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  auto model = import(source);
  EXPECT_TRUE(model.ok()) << model.status().text();
  if (!model.ok()) return nullptr;
  return View::whole(model.take(), KnownOpsets{.opsets = {{std::string(sample.domain), opset}}});  // keeps the model
}

// The form in which the node is shown; 0: it is too new.
uint32_t shown(const Sample& sample, uint32_t opset) {
  const auto view = seen(sample, opset);
  if (!view) return UINT32_MAX;
  const uint32_t last = view->abi()->node_count - 1;
  EXPECT_EQ(view->why_too_new(last).empty(), !view->too_new(last));
  return view->too_new(last) ? 0 : bp_graph_node(view->abi(), last)->since_version;
}

std::string refusal(const Sample& sample, uint32_t opset) {
  const auto view = seen(sample, opset);
  return view ? view->why_too_new(view->abi()->node_count - 1) : "invalid";
}

TEST(OpVersions, ValuesOfAttributesThatAreNewer) {
  const std::vector<Operand> x = {{kFloat, {4, 4}}};
  for (const char* mode : {"reflect", "wrap"}) {
    const Sample pad{"Pad", x, {string_attribute("mode", mode)}, {{1, 1, 1, 1}}};
    EXPECT_EQ(shown(pad, 18), mode == std::string_view("wrap") ? 0u : 18u) << mode;
    EXPECT_EQ(shown(pad, 19), 19u);
  }
  for (const char* reduction : {"add", "max", "min"}) {
    const bool is_old = reduction == std::string_view("add");
    const Texts attributes = {string_attribute("reduction", reduction)};
    EXPECT_EQ(shown({"ScatterElements", {x[0], {kInt64, {2, 2}}, {kFloat, {2, 2}}}, attributes}, 17), is_old ? 16 : 0);
    EXPECT_EQ(shown({"ScatterND", {x[0], {kInt64, {2, 1}}, {kFloat, {2, 4}}}, attributes}, 17), is_old ? 16 : 0);
    EXPECT_EQ(shown({"ScatterND", {x[0], {kInt64, {2, 1}}, {kFloat, {2, 4}}}, attributes}, 18), 18u);
  }
  for (const char* mode : {"half_pixel", "half_pixel_symmetric"}) {
    const Sample resize{
        "Resize", {x[0], {kFloat, {0}}, {kFloat, {2}}}, {string_attribute("coordinate_transformation_mode", mode)}};
    EXPECT_EQ(shown(resize, 18), mode == std::string_view("half_pixel") ? 18u : 0u) << mode;
  }
}

// Scans a matrix along one axis.
Sample scan(int64_t axis, int64_t written) {
  const std::string body =
      graph({node("Add", {"s", "v"}, {"t"}), node("Identity", {"t"}, {"u"})},
            {tensor_value("s", kFloat, {2}), tensor_value("v", kFloat, {2})}, {value("t"), value("u")});
  return {
      "Scan",
      {{kFloat, {2}}, {kFloat, {2, 5}}},
      {graph_attribute("body", body), int_attribute("num_scan_inputs", 1), ints_attribute("scan_input_axes", {axis})},
      {},
      written,
      2};
}

TEST(OpVersions, AxesThatCountFromTheBack) {
  const Operand x{kFloat, {2, 3}};
  const auto axis = [](int64_t value) { return Texts{int_attribute("axis", value)}; };
  for (const char* op : {"ArgMax", "ArgMin", "Flatten"}) {
    EXPECT_EQ(shown({op, {x}, axis(1)}, 10), op[0] == 'F' ? 9u : 1u) << op;
    EXPECT_EQ(shown({op, {x}, axis(-1)}, 10), 0u) << op;
    EXPECT_EQ(shown({op, {x}, axis(-1)}, 11), 11u) << op;
  }
  EXPECT_EQ(shown({"Concat", {x, x}, axis(0)}, 10), 4u);
  EXPECT_EQ(shown({"Concat", {x, x}, axis(-2)}, 10), 0u);
  EXPECT_EQ(shown({"Compress", {x, {BP_DTYPE_BOOL, {2}}}}, 10), 9u);  // no axis: flattened
  EXPECT_EQ(shown({"Compress", {x, {BP_DTYPE_BOOL, {2}}}, axis(-1)}, 10), 0u);
  EXPECT_EQ(shown({"TopK", {x}, axis(-1), {{1}}, kNewest, 2}, 10), 10u);  // -1 is the default axis
  EXPECT_EQ(shown({"TopK", {x}, axis(-2), {{1}}, kNewest, 2}, 10), 0u);
  EXPECT_EQ(shown({"Slice", {x}, {}, {{0}, {1}, {1}}}, 10), 10u);
  EXPECT_EQ(shown({"Slice", {x}, {}, {{0}, {1}, {-1}}}, 10), 0u);
  EXPECT_EQ(shown({"Slice", {x}, {}, {{0}, {1}}}, 10), 10u);
  EXPECT_EQ(shown(scan(1, kNewest), 10), 9u);
  EXPECT_EQ(shown(scan(-1, kNewest), 10), 0u);
}

// A device is shown the form that a model was written in, unless the text of that form excludes the node.
TEST(OpVersions, WhatOlderTextsLeaveOpenFitsModelsWrittenForThem) {
  const Operand x{kFloat, {2, 3}}, condition{BP_DTYPE_BOOL, {2}};
  const Operand depth{kInt64, {1}}, on_off{kFloat, {2}};
  const auto axis = [](int64_t value) { return Texts{int_attribute("axis", value)}; };
  for (const int64_t written : {10, 11}) {
    const auto form = [&](uint32_t version) { return written == 10 ? version : 0; };
    EXPECT_EQ(shown({"ArgMax", {x}, axis(-1), {}, written}, 10), form(1));
    EXPECT_EQ(shown({"ArgMin", {x}, axis(-1), {}, written}, 10), form(1));
    EXPECT_EQ(shown({"Compress", {x, condition}, axis(-1), {}, written}, 10), form(9));
    EXPECT_EQ(shown({"Concat", {x, x}, axis(-1), {}, written}, 10), form(4));
    EXPECT_EQ(shown({"Gather", {x}, {}, {{0, -1}}, written}, 10), form(1));
    EXPECT_EQ(shown({"OneHot", {{BP_DTYPE_UINT8, {3}}, depth, on_off}, axis(-2), {}, written}, 10), form(9));
    EXPECT_EQ(shown({"Slice", {x}, {}, {{0}, {1}, {-1}}, written}, 10), form(10));
    EXPECT_EQ(shown({"TopK", {x}, axis(-2), {{1}}, written, 2}, 10), form(10));
    EXPECT_EQ(shown(scan(-1, written), 10), form(9));
  }
  EXPECT_EQ(shown({"Flatten", {x}, axis(-1), {}, 10}, 10), 0u);  // its axes are from 0 to the rank
  EXPECT_EQ(shown({"OneHot", {}, {}, {{1}, {4}, {0, 1}}, 10}, 10), 9u);
  EXPECT_EQ(shown({"OneHot", {}, {}, {{-1}, {4}, {0, 1}}, 10}, 10), 0u);  // sets no element
}

// Indices that are unknown until the run fit the forms of the version that the model was written for.
TEST(OpVersions, IndicesThatCountFromTheBack) {
  const Operand x{kFloat, {4}};
  EXPECT_EQ(shown({"Gather", {x}, {}, {{0, 3}}}, 10), 1u);
  EXPECT_EQ(shown({"Gather", {x}, {}, {{0, -1}}}, 10), 0u);
  EXPECT_EQ(shown({"Gather", {x}, {}, {{0, -1}}}, 11), 11u);
  EXPECT_EQ(shown({"Gather", {x}, {int_attribute("axis", -1)}, {{0}}}, 10), 1u);  // its axis could always be negative
  EXPECT_EQ(shown({"Gather", {x, {kInt64, {2}}}}, 10), 0u);
  EXPECT_EQ(shown({"Gather", {x, {kInt64, {2}}}, {}, {}, 10}, 10), 1u);
  const Operand depth{kInt64, {1}}, on_off{kFloat, {2}};
  EXPECT_EQ(shown({"OneHot", {{BP_DTYPE_UINT8, {3}}, depth, on_off}}, 10), 9u);
  EXPECT_EQ(shown({"OneHot", {{kInt64, {3}}, depth, on_off}}, 10), 0u);
  EXPECT_EQ(shown({"OneHot", {{kInt64, {3}}, depth, on_off}, {}, {}, 9}, 10), 9u);
  EXPECT_EQ(shown({"OneHot", {{BP_DTYPE_UINT8, {3}}, depth, on_off}, {int_attribute("axis", -2)}}, 10), 0u);
}

TEST(OpVersions, ShapesThatAreNewer) {
  for (const char* op : {"Max", "Mean", "Min", "Sum"}) {
    EXPECT_EQ(shown({op, {{kFloat, {"n", 3}}, {kFloat, {"n", 3}}}}, 7), 6u) << op;
    EXPECT_EQ(shown({op, {{kFloat, {2, 3}}, {kFloat, {3}}}}, 7), 0u) << op;
    EXPECT_EQ(shown({op, {{kFloat, {"n"}}, {kFloat, {"m"}}}}, 7), 0u) << op;
    EXPECT_EQ(shown({op, {{kFloat, {"n"}}, {kFloat, {"m"}}}, {}, {}, 6}, 7), 6u) << op;
    EXPECT_EQ(shown({op, {{kFloat, {2, 3}}, {kFloat, {3}}}}, 8), 8u) << op;
  }
  for (const std::vector<int64_t>& other : {std::vector<int64_t>{2, 3}, {2, 1}, {6}}) {
    const auto branch = [](const std::vector<int64_t>& dims) {
      const int64_t count = dims.size() == 1 ? dims[0] : dims[0] * dims[1];
      return graph({}, {}, {value("t")}, {tensor("t", kFloat, dims, std::vector<float>(static_cast<size_t>(count)))});
    };
    const Sample choice{
        "If",
        {{BP_DTYPE_BOOL, {}}},
        {graph_attribute("then_branch", branch({2, 3})), graph_attribute("else_branch", branch(other))}};
    EXPECT_EQ(shown(choice, 10), other.back() == 3 ? 1u : 0u);
    EXPECT_EQ(shown(choice, 11), 11u);
  }
  for (const char* op : {"DequantizeLinear", "QuantizeLinear"}) {
    const uint32_t dtype = op[0] == 'D' ? BP_DTYPE_UINT8 : BP_DTYPE_FLOAT;
    EXPECT_EQ(shown({op, {{dtype, {2, 3}}, {kFloat, {}}, {BP_DTYPE_UINT8, {}}}}, 12), 10u) << op;
    EXPECT_EQ(shown({op, {{dtype, {2, 3}}, {kFloat, {3}}, {BP_DTYPE_UINT8, {3}}}}, 12), 0u) << op;
    EXPECT_EQ(shown({op, {{dtype, {2, 3}}, {kFloat, {3}}, {BP_DTYPE_UINT8, {3}}}}, 13), 13u) << op;
  }
}

TEST(OpVersions, WindowsOfPools) {
  const auto pool = [](const char* op, Dim extent, int64_t kernel, int64_t stride, int64_t end,
                       const Texts& more = {}) {
    Texts attributes = {ints_attribute("kernel_shape", {kernel}), ints_attribute("strides", {stride}),
                        ints_attribute("pads", {0, end})};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return Sample{op, {{kFloat, {1, 1, extent}}}, attributes};
  };
  const std::string ceil = int_attribute("ceil_mode", 1);
  for (const char* op : {"AveragePool", "MaxPool"}) {
    const uint32_t old = op[0] == 'A' ? 19 : 12;
    EXPECT_EQ(shown(pool(op, 5, 2, 3, 1), 21), old) << op;
    // The windows start at 0, 3 and 6; the last one is ignored from version 22 on.
    EXPECT_EQ(shown(pool(op, 6, 2, 3, 1, {ceil}), 21), 0u) << op;
    EXPECT_EQ(shown(pool(op, 6, 2, 3, 1, {ceil}), 22), 22u) << op;
    EXPECT_EQ(shown(pool(op, 4, 2, 3, 1, {ceil}), 21), old) << op;
    EXPECT_EQ(shown(pool(op, "n", 2, 3, 1, {ceil}), 21), 0u) << op;
    EXPECT_EQ(shown(pool(op, "n", 3, 2, 1, {ceil}), 21), old) << op;  // no extent makes a window start too late
    EXPECT_EQ(shown(pool(op, INT32_MAX, INT32_MAX, 3, INT32_MAX, {ceil}), 21), 0u) << op;
    Sample same = pool(op, 6, 2, 3, 0, {ceil, string_attribute("auto_pad", "SAME_UPPER")});
    same.attributes.erase(same.attributes.begin() + 2);
    EXPECT_EQ(shown(same, 21), old) << op;
  }
  for (const auto& [op, newer, old] : std::vector<std::tuple<const char*, uint32_t, uint32_t>>{
           {"AveragePool", 19, 11}, {"LpPool", 18, 11}, {"MaxPool", 10, 8}}) {
    for (const int64_t dilation : {1, 2}) {
      const Sample sample = pool(op, 9, 2, 1, 0, {ints_attribute("dilations", {dilation})});
      EXPECT_EQ(shown(sample, newer - 1), dilation == 1 ? old : 0u) << op;
      EXPECT_GE(shown(sample, newer), newer) << op;
    }
  }
}

TEST(OpVersions, MeaningsThatChanged) {
  const std::vector<Operand> images = {{kFloat, {1, 1, 5, 5}}, {kFloat, {1, 1, 3, 3}}};
  EXPECT_EQ(shown({"ConvTranspose", images}, 10), 1u);
  const Texts same = {string_attribute("auto_pad", "SAME_UPPER")}, fixed = {ints_attribute("output_shape", {6, 6})};
  EXPECT_EQ(shown({"ConvTranspose", images, same}, 10), 0u);
  EXPECT_EQ(shown({"ConvTranspose", images, fixed}, 10), 0u);
  EXPECT_EQ(shown({"ConvTranspose", images, fixed}, 11), 11u);
  for (const auto& [to, form] : {std::pair{BP_DTYPE_FLOAT8E4M3FN, 23u}, std::pair{BP_DTYPE_FLOAT8E4M3FNUZ, 0u}}) {
    EXPECT_EQ(shown({"Cast", {{kFloat, {2}}}, {int_attribute("to", to)}}, 23), form);
    EXPECT_EQ(shown({"CastLike", {{kFloat, {2}}, {static_cast<uint32_t>(to), {1}}}}, 23), form);
  }
  const Texts unsaturated = {int_attribute("to", BP_DTYPE_FLOAT8E4M3FNUZ), int_attribute("saturate", 0)};
  EXPECT_EQ(shown({"Cast", {{kFloat, {2}}}, unsaturated}, 23), 23u);

  const Operand heads{kFloat, {1, 2, 4, 8}};
  const Texts causal = {int_attribute("is_causal", 1)};
  EXPECT_EQ(shown({"Attention", {heads, heads, heads, {kFloat, {4, 4}}}}, 23), 23u);
  EXPECT_EQ(shown({"Attention", {heads, heads, heads}, causal}, 23), 23u);
  EXPECT_EQ(shown({"Attention", {heads, heads, heads, {kFloat, {4, 4}}}, causal}, 23), 0u);
  EXPECT_EQ(shown({"Attention", {heads, heads, heads, {kFloat, {4, 3}}}}, 23), 0u);  // extended by one column

  const Sample windowed{"Attention", {heads, heads, heads}, {int_attribute("left_window_size", 2)}};
  EXPECT_EQ(shown(windowed, 24), 0u);
  EXPECT_EQ(shown(windowed, 25), 25u);

  for (const uint32_t dtype : {kFloat, uint32_t{BP_DTYPE_BFLOAT16}, kInt64}) {
    for (const int64_t fmod : {0, 1}) {
      const Sample sample{"Mod", {{dtype, {3}}, {dtype, {3}}}, {int_attribute("fmod", fmod)}};
      EXPECT_EQ(shown(sample, 27), dtype != kInt64 && fmod == 0 ? 0u : 13u) << dtype << " " << fmod;
      EXPECT_EQ(shown(sample, 28), 28u);
    }
  }
  const Operand bytes{BP_DTYPE_UINT8, {3}};
  const Texts left = {string_attribute("direction", "LEFT")};
  EXPECT_EQ(shown({"BitShift", {bytes, bytes}, left}, 27), 0u);
  EXPECT_EQ(shown({"BitShift", {bytes, bytes}, left}, 28), 28u);
  EXPECT_EQ(shown({"BitShift", {bytes, bytes}, left, {}, 27}, 27), 11u);
  EXPECT_EQ(shown({.op = "BitShift", .inputs = {bytes}, .attributes = left, .bytes = {0, 1, 7}}, 27), 11u);
  EXPECT_EQ(shown({.op = "BitShift", .inputs = {bytes}, .attributes = left, .bytes = {0, 1, 8}}, 27), 0u);
  EXPECT_EQ(shown({"BitShift", {{BP_DTYPE_INT8, {3}}, {BP_DTYPE_INT8, {3}}}, left}, 27), 0u);

  const auto encoder = [](const std::vector<float>& keys, int64_t written = 4) {
    return Sample{"LabelEncoder",
                  {{kFloat, {2}}},
                  {floats_attribute("keys_floats", keys), ints_attribute("values_int64s", {1, 2})},
                  {},
                  written,
                  1,
                  "ai.onnx.ml"};
  };
  EXPECT_EQ(shown(encoder({1, 2}), 3), 2u);
  EXPECT_EQ(shown(encoder({1, 1}), 3), 0u);
  EXPECT_EQ(shown(encoder({1, std::numeric_limits<float>::quiet_NaN()}), 3), 0u);
  EXPECT_EQ(shown(encoder({1, 1}, 3), 3), 2u);
  EXPECT_EQ(shown(encoder({1, std::numeric_limits<float>::quiet_NaN()}, 3), 3), 2u);
}

TEST(OpVersions, TypesThatAreNewer) {
  const Operand number{kFloat, {2}};
  EXPECT_EQ(shown({"Pow", {number, number}}, 11), 7u);
  EXPECT_EQ(shown({"Pow", {number, {BP_DTYPE_DOUBLE, {2}}}}, 11), 0u);  // one type for both
  EXPECT_EQ(shown({"Pow", {number, {BP_DTYPE_DOUBLE, {2}}}}, 12), 12u);
  const Operand half{BP_DTYPE_FLOAT16, {2}}, zero{BP_DTYPE_UINT8, {}};
  EXPECT_EQ(shown({"QuantizeLinear", {half, {BP_DTYPE_FLOAT16, {}}, zero}}, 21), 21u);
  EXPECT_EQ(shown({"QuantizeLinear", {half, {kFloat, {}}, zero}}, 21), 0u);
  EXPECT_EQ(shown({"Relu", {{BP_DTYPE_INT32, {2}}}}, 13), 0u);

  const std::string taken = graph({node("SequenceConstruct", {"x0"}, {"t"})}, {}, {value("t")});
  const std::string bytes = model_bytes(
      {{"", kNewest}},
      graph({node("If", {"c"}, {"z"}, {graph_attribute("then_branch", taken), graph_attribute("else_branch", taken)})},
            {tensor_value("x0", kFloat, {2}), tensor_value("c", BP_DTYPE_BOOL, {})}, {value("z")}));
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  auto imported = import(source);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  const std::shared_ptr<const Model> model = imported.take();
  const auto view = [&](uint32_t opset) { return View::whole(model, KnownOpsets{.opsets = {{"", opset}}}); };
  EXPECT_TRUE(view(12)->too_new(0));  // If returns sequences from version 13 on
  EXPECT_FALSE(view(13)->too_new(0));
}

TEST(OpVersions, RefusalsNameWhatIsNewer) {
  const Operand x{kFloat, {2, 3}};
  const Texts axis = {int_attribute("axis", -1)};
  EXPECT_EQ(refusal({"Concat", {x, x}, axis}, 10),
            "a negative axis needs version 11 of Concat; this device knows opset 10");
  EXPECT_EQ(refusal({"Concat", {x, x}, axis}, 11), "");
  EXPECT_EQ(
      refusal({"MaxPool",
               {{kFloat, {1, 1, 6}}},
               {ints_attribute("kernel_shape", {2}), ints_attribute("strides", {3}), ints_attribute("pads", {0, 1}),
                int_attribute("ceil_mode", 1)}},
              12),
      "a window that may begin in the padding at the end needs version 22 of MaxPool; this device knows opset 12");
  EXPECT_EQ(refusal({"Softmax", {x}}, 11),
            "Softmax has another form or meaning before version 13; this device knows opset 11");
  EXPECT_EQ(refusal({"Gelu", {x}}, 19), "Gelu is new in version 20; this device knows opset 19");
  EXPECT_EQ(refusal({"Relu", {{BP_DTYPE_INT32, {2}}}}, 6),
            "an input or its type needs version 14 of Relu; this device knows opset 6");
  EXPECT_EQ(refusal({"Shape", {x}, {int_attribute("start", 1)}}, 14),
            "one of its attributes needs version 15 of Shape; this device knows opset 14");
  EXPECT_EQ(refusal({"LabelEncoder",
                     {{kInt64, {2}}},
                     {ints_attribute("keys_int64s", {1, 1}), ints_attribute("values_int64s", {1, 2})},
                     {},
                     4,
                     1,
                     "ai.onnx.ml"},
                    3),
            "a repeated key or a key of NaN needs version 4 of LabelEncoder; this device knows opset 3 of ai.onnx.ml");
  const std::string branch = graph({node("Gelu", {"x0"}, {"t"}, {}, "", "g")}, {}, {value("t")});
  const Texts branches = {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)};
  const auto model = [&] {
    const std::string bytes = model_bytes(
        {{"", kNewest}}, graph({node("If", {"c"}, {"z"}, branches)},
                               {tensor_value("x0", kFloat, {2}), tensor_value("c", BP_DTYPE_BOOL, {})}, {value("z")}));
    Source source;
    source.bytes = bytes.data();
    source.size = bytes.size();
    return import(source).take();
  }();
  EXPECT_EQ(View::whole(model, KnownOpsets{.opsets = {{"", 19}}})->why_too_new(0),
            "in its body Gelu 'g': Gelu is new in version 20; this device knows opset 19");
}

TEST(OpVersions, LimitsAreSortedAndNoUpgradeHidesThem) {
  const Limit* before = nullptr;
  for (const Limit& limit : all_limits()) {
    SCOPED_TRACE(std::string(limit.op) + "-" + std::to_string(limit.version));
    const ops::Schema* to = ops::find_schema(limit.domain, limit.op, limit.version);
    ASSERT_NE(to, nullptr);
    EXPECT_EQ(to->since_version, limit.version);
    EXPECT_NE(to->older, nullptr);
    for (const ops::Schema* form = to; form; form = form->newer) {
      const ops::Upgrade* change = ops::find_upgrade(*form);
      EXPECT_TRUE(!change || change->function == ops::unchanged) << "no node is shown in an older form anyway";
    }
    if (before) {
      EXPECT_LT(std::tie(before->domain, before->op, before->version), std::tie(limit.domain, limit.op, limit.version));
    }
    before = &limit;
  }
}

}  // namespace
}  // namespace backplane::model
