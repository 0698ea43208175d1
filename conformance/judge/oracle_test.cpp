// SPDX-License-Identifier: Apache-2.0
// Tests the oracle, which judges backends, against ONNX's own node data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "judge/estimate.h"
#include "judge/judge.h"
#include "onnx/wire.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Adds ONNX's default attributes, because cases write out every default and models do not.
Attributes with_defaults(const onnx::NodeProto& node) {
  static const std::map<std::string, Attributes> kDefaults = {
      {"LeakyRelu", {{"alpha", 0.01f}}},
      {"Elu", {{"alpha", 1.0f}}},
      {"Selu", {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}},
      {"HardSigmoid", {{"alpha", 0.2f}, {"beta", 0.5f}}},
      {"BatchNormalization", {{"epsilon", 1e-5f}}},
      {"LayerNormalization", {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}}},
      {"InstanceNormalization", {{"epsilon", 1e-5f}}},
      {"Softmax", {{"axis", int64_t{-1}}}},
      {"LogSoftmax", {{"axis", int64_t{-1}}}},
      {"Flatten", {{"axis", int64_t{1}}}},
      {"Resize", {{"mode", std::string("nearest")}}},
      {"Pad", {{"mode", std::string("constant")}}},
  };
  Attributes attributes;
  for (const onnx::AttributeProto& one : node.attribute()) {
    switch (one.type()) {
      case onnx::AttributeProto::INT:
        attributes.push_back({one.name(), one.i()});
        break;
      case onnx::AttributeProto::FLOAT:
        attributes.push_back({one.name(), one.f()});
        break;
      case onnx::AttributeProto::STRING:
        attributes.push_back({one.name(), one.s()});
        break;
      case onnx::AttributeProto::INTS:
        attributes.push_back({one.name(), std::vector<int64_t>(one.ints().begin(), one.ints().end())});
        break;
      case onnx::AttributeProto::FLOATS:
        attributes.push_back({one.name(), std::vector<float>(one.floats().begin(), one.floats().end())});
        break;
      default:
        break;
    }
  }
  const auto defaults = kDefaults.find(node.op_type());
  if (defaults == kDefaults.end()) return attributes;
  for (const Attribute& one : defaults->second) {
    if (std::none_of(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == one.name; })) {
      attributes.push_back(one);
    }
  }
  return attributes;
}

// True if the node uses its operator in a way that no profile requires.
bool is_outside(const onnx::NodeProto& node, const Attributes& attributes) {
  const auto text = [&](const char* name) {
    for (const Attribute& one : attributes) {
      if (const auto* value = std::get_if<std::string>(&one.value); one.name == name && value != nullptr) return *value;
    }
    return std::string();
  };
  const auto whole = [&](const char* name) {
    for (const Attribute& one : attributes) {
      if (const auto* value = std::get_if<int64_t>(&one.value); one.name == name && value != nullptr) return *value;
    }
    return int64_t{0};
  };
  // True if the node has attributes that calls cannot have, such as tensors and graphs.
  if (static_cast<int>(attributes.size()) < node.attribute_size()) return true;
  const std::string& op = node.op_type();
  if (op == "Pad") return node.input_size() > 3;
  if (op == "MaxPool") return node.output_size() > 1;
  if (op == "BatchNormalization") return whole("training_mode") != 0;
  if (op == "LayerNormalization") return node.output_size() > 1;
  if (op == "ConvTranspose") {
    return (!text("auto_pad").empty() && text("auto_pad") != "NOTSET") ||
           std::any_of(attributes.begin(), attributes.end(),
                       [](const Attribute& a) { return a.name == "output_shape"; });
  }
  return false;
}

bool is_known(bp_dtype_t dtype) {
  const std::set<bp_dtype_t> known = {BP_DTYPE_FLOAT, BP_DTYPE_DOUBLE, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16,
                                      BP_DTYPE_BOOL,  BP_DTYPE_UINT8,  BP_DTYPE_INT8,    BP_DTYPE_UINT16,
                                      BP_DTYPE_INT16, BP_DTYPE_INT32,  BP_DTYPE_UINT32,  BP_DTYPE_INT64,
                                      BP_DTYPE_UINT64};
  return known.contains(dtype);
}

bp_dtype_t declared(const onnx::ValueInfoProto& info) {
  return static_cast<bp_dtype_t>(info.type().tensor_type().elem_type());
}

const Operator* find(const std::string& name) {
  for (const Operator* op : all_operators()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

// Returns false if the test does not apply to the oracle. Adds differences to `failures`.
bool check(const fs::path& folder, std::string& failures) {
  onnx::ModelProto model;
  if (!model.ParseFromString(content(folder / "model.onnx"))) return false;
  if (model.graph().node_size() != 1 || model.opset_import_size() != 1) return false;
  const onnx::NodeProto& node = model.graph().node(0);
  const Operator* op = node.domain().empty() ? find(node.op_type()) : nullptr;
  if (op == nullptr || !newest_form(op->versions, static_cast<uint32_t>(model.opset_import(0).version()), false))
    return false;
  const Attributes attributes = with_defaults(node);
  if (is_outside(node, attributes)) return false;

  std::map<std::string, Array> values;
  const fs::path data = folder / "test_data_set_0";
  for (int i = 0; i < model.graph().input_size(); ++i) {
    const onnx::ValueInfoProto& info = model.graph().input(i);
    if (!info.type().has_tensor_type()) return false;
    const onnx::Tensor tensor =
        onnx::parse_value(content(data / ("input_" + std::to_string(i) + ".pb")), BP_KIND_TENSOR).tensor;
    // Some older test data has a type that differs from its model's declaration.
    if (!is_known(tensor.dtype) || tensor.dtype != declared(info)) return false;
    values[info.name()] = to_array(tensor);
  }
  std::vector<const Array*> inputs;
  for (const std::string& name : node.input()) inputs.push_back(name.empty() ? nullptr : &values.at(name));

  std::map<size_t, onnx::Tensor> outputs;  // by position in the node; omitted outputs have neither a name nor a file
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const auto number = static_cast<int>(outputs.size());
    const std::string bytes = content(data / ("output_" + std::to_string(number) + ".pb"));
    const onnx::Tensor& tensor = outputs[static_cast<size_t>(i)] = onnx::parse_value(bytes, BP_KIND_TENSOR).tensor;
    if (!is_known(tensor.dtype) || tensor.dtype != declared(model.graph().output(number))) return false;
  }
  try {
    const References seen = op->compute(Call(inputs, attributes, static_cast<uint32_t>(node.output_size())));
    for (const auto& [i, output] : outputs) {
      const Judgement judgement = judge(seen.at(i), output, {});
      if (judgement.answer == Judgement::kWrong)
        failures += folder.filename().string() + ": " + judgement.reason + "\n";
    }
  } catch (const NotKnown&) {
    return false;
  } catch (const std::exception& error) {
    failures += folder.filename().string() + ": " + error.what() + "\n";
  }
  return true;
}

void run_suite(const fs::path& data, const std::set<std::string>& wrong_data, size_t floor, size_t operators) {
  if (!fs::is_directory(data)) GTEST_SKIP() << data << " is missing; this fetches it: scripts/setup.sh";
  std::string failures;
  std::set<std::string> names;
  size_t checked = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(data)) {
    if (wrong_data.contains(entry.path().filename().string()) || !check(entry.path(), failures)) continue;
    ++checked;
    onnx::ModelProto model;
    model.ParseFromString(content(entry.path() / "model.onnx"));
    names.insert(model.graph().node(0).op_type());
  }
  std::printf("%zu cases of %zu operators\n", checked, names.size());
  EXPECT_EQ(failures, "");
  EXPECT_GE(checked, floor);
  EXPECT_GE(names.size(), operators);
}

TEST(Oracle, BrainFloatsNeedANewerVersionOfSomeOperators) {
  const std::vector<uint32_t> top_k = {11, 24}, round = {11, 22}, cast = {13, 19};
  EXPECT_EQ(newest_form(top_k, 23, false), 11);
  EXPECT_EQ(newest_form(top_k, 23, true), std::nullopt);
  EXPECT_EQ(newest_form(top_k, 24, true), 24);
  EXPECT_EQ(newest_form(round, 21, true), std::nullopt);
  EXPECT_EQ(newest_form(round, 23, true), 22);
  EXPECT_EQ(newest_form(cast, 18, true), 13);
}

TEST(Oracle, CastsBetweenIntegersKeepTheLowBits) {
  Array x(BP_DTYPE_INT32, {6});
  x.values = {16777217, 1073741825, -1073741825, 300, 17, -9};
  const auto cast = [&](bp_dtype_t to) {
    const Attributes attributes = {{"to", int64_t{to}}};
    return compute("Cast", Call({&x}, attributes, 1)).at(0).value.values;
  };
  using Numbers = std::vector<double>;  // those of ONNX's reference implementation
  EXPECT_EQ(cast(BP_DTYPE_UINT4), (Numbers{1, 1, 15, 12, 1, 7}));
  EXPECT_EQ(cast(BP_DTYPE_INT4), (Numbers{1, 1, -1, -4, 1, 7}));
  EXPECT_EQ(cast(BP_DTYPE_UINT2), (Numbers{1, 1, 3, 0, 1, 3}));
  EXPECT_EQ(cast(BP_DTYPE_INT2), (Numbers{1, 1, -1, 0, 1, -1}));
  EXPECT_EQ(cast(BP_DTYPE_INT8), (Numbers{1, 1, -1, 44, 17, -9}));
  EXPECT_EQ(cast(BP_DTYPE_UINT8), (Numbers{1, 1, 255, 44, 17, 247}));
  EXPECT_EQ(cast(BP_DTYPE_INT64), x.values);
}

TEST(Oracle, ShiftsKeepTheSignAndLoseWhatPassesIt) {
  const auto shift = [](const char* direction, bp_dtype_t dtype, std::vector<double> numbers,
                        std::vector<double> amounts) {
    Array x(dtype, {static_cast<int64_t>(numbers.size())}), by = x;
    x.values = std::move(numbers);
    by.values = std::move(amounts);
    const Attributes attributes = {{"direction", std::string(direction)}};
    return compute("BitShift", Call({&x, &by}, attributes, 1)).at(0).value.values;
  };
  using Numbers = std::vector<double>;  // those of ONNX's reference implementation, where the amount is in range
  EXPECT_EQ(shift("RIGHT", BP_DTYPE_INT8, {-128, -7, 7, -1, 127, -3}, {7, 1, 1, 8, 8, -1}),
            (Numbers{-1, -4, 3, -1, 0, -1}));
  EXPECT_EQ(shift("LEFT", BP_DTYPE_INT8, {1, 3, -128, -3, 5, 5}, {7, 6, 1, 2, 8, -1}),
            (Numbers{-128, -64, 0, -12, 0, 0}));
  EXPECT_EQ(shift("RIGHT", BP_DTYPE_UINT8, {255, 255, 128}, {7, 8, 200}), (Numbers{1, 0, 0}));
  EXPECT_EQ(shift("LEFT", BP_DTYPE_INT64, {-1, 3, 1}, {63, 63, 64}), (Numbers{-0x1p63, -0x1p63, 0}));
  EXPECT_EQ(shift("RIGHT", BP_DTYPE_INT64, {-1, 65535, -65536}, {63, 64, 64}), (Numbers{-1, 0, -1}));
}

TEST(Oracle, RemaindersHaveTheSignOfTheDivisorOrWithFmodOfTheDividend) {
  const auto remainder = [](double a, double b, int64_t fmod) {
    Array x(BP_DTYPE_FLOAT, {}), y(BP_DTYPE_FLOAT, {});
    x.values = {a};
    y.values = {b};
    const Attributes attributes = {{"fmod", fmod}};
    return compute("Mod", Call({&x, &y}, attributes, 1)).at(0).value.values[0];
  };
  const double numbers[][4] = {// dividend, divisor, remainder without fmod, and with it
                               {-4.5, 2, 1.5, -0.5},
                               {4.5, -2, -1.5, 0.5},
                               {-4.5, -2, -0.5, -0.5},
                               {4, 2, 0, 0},
                               {1.5, INFINITY, 1.5, 1.5},
                               {-1.5, INFINITY, INFINITY, -1.5},
                               {1.5, -INFINITY, -INFINITY, 1.5}};
  for (const auto& [a, b, floored, truncated] : numbers) {
    EXPECT_EQ(remainder(a, b, 0), floored) << a << " " << b;
    EXPECT_EQ(remainder(a, b, 1), truncated) << a << " " << b;
  }
  for (const double zero : {0.0, -0.0}) {
    for (const double b : {2.0, -2.0, double{INFINITY}, -double{INFINITY}}) {
      EXPECT_EQ(remainder(zero, b, 0), 0);
      EXPECT_EQ(std::signbit(remainder(zero, b, 0)), b < 0);
    }
  }
  EXPECT_TRUE(std::isnan(remainder(1, 0, 0)));
  EXPECT_TRUE(std::isnan(remainder(INFINITY, 2, 0)));
  EXPECT_TRUE(std::isnan(remainder(NAN, INFINITY, 0)));
}

TEST(Oracle, SpaceToDepthIsTheReverseOfDepthToSpaceInBothModes) {
  Array x(BP_DTYPE_FLOAT, {1, 2, 4, 6});
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<double>(i);
  for (const char* mode : {"DCR", "CRD"}) {
    const Attributes attributes = {{"blocksize", int64_t{2}}, {"mode", std::string(mode)}};
    const Array deep = compute("SpaceToDepth", Call({&x}, attributes, 1)).at(0).value;
    // The first column is that of ONNX's reference implementation.
    std::vector<double> first;
    for (int64_t c = 0; c < 8; ++c) first.push_back(deep.at({0, c, 0, 0}));
    using Numbers = std::vector<double>;
    EXPECT_EQ(first, mode[0] == 'D' ? (Numbers{0, 24, 1, 25, 6, 30, 7, 31}) : (Numbers{0, 1, 6, 7, 24, 25, 30, 31}));
    EXPECT_EQ(compute("DepthToSpace", Call({&deep}, attributes, 1)).at(0).value.values, x.values);
  }
}

// ONNX clamps starts and ends. NumPy does not clamp a start before the first element if the step is negative.
TEST(Oracle, SlicesBeyondAnAxisAreClampedToIt) {
  Array x(BP_DTYPE_FLOAT, {4}), nothing(BP_DTYPE_FLOAT, {0});
  x.values = {10, 11, 12, 13};
  const auto slice = [](const Array& from, double start, double end, double step) {
    Array places[] = {Array(BP_DTYPE_INT64, {1}), Array(BP_DTYPE_INT64, {1}), Array(BP_DTYPE_INT64, {1}),
                      Array(BP_DTYPE_INT64, {1})};
    places[0].values = {start};
    places[1].values = {end};
    places[3].values = {step};
    return compute("Slice", Call({&from, &places[0], &places[1], &places[2], &places[3]}, {}, 1)).at(0).value.values;
  };
  using Numbers = std::vector<double>;
  EXPECT_EQ(slice(x, -9, -9, -1), Numbers{10});
  EXPECT_EQ(slice(x, -5, -9, -2), Numbers{10});
  EXPECT_EQ(slice(x, -9, 0, -1), Numbers{});
  EXPECT_EQ(slice(x, 9, -9, -2), (Numbers{13, 11}));
  EXPECT_EQ(slice(x, 9, -4, -2), (Numbers{13, 11}));
  EXPECT_EQ(slice(x, 9, 4, -1), Numbers{});
  EXPECT_EQ(slice(x, -9, 9, 3), (Numbers{10, 13}));
  EXPECT_EQ(slice(x, 9, 9, 1), Numbers{});
  for (const double step : {-1, 1}) EXPECT_EQ(slice(nothing, -9, 9, step), Numbers{});
  for (const double step : {-1, 1}) EXPECT_EQ(slice(nothing, 9, -9, step), Numbers{});
}

TEST(Oracle, ExtremesOfNoElementsAreTheEndsOfTheType) {
  const auto extreme = [](const char* op, bp_dtype_t dtype) {
    const Array nothing(dtype, {0});
    return compute(op, Call({&nothing}, {}, 1)).at(0).value.values.at(0);
  };
  EXPECT_EQ(extreme("ReduceMax", BP_DTYPE_FLOAT), -HUGE_VAL);
  EXPECT_EQ(extreme("ReduceMax", BP_DTYPE_BOOL), 0);
  EXPECT_EQ(extreme("ReduceMin", BP_DTYPE_BOOL), 1);
  EXPECT_EQ(extreme("ReduceMax", BP_DTYPE_INT8), -128);
  EXPECT_EQ(extreme("ReduceMin", BP_DTYPE_INT32), 2147483647);
  EXPECT_EQ(extreme("ReduceMin", BP_DTYPE_UINT8), 255);
}

// A quotient that is known to a few units only is still clamped to the end of the range.
TEST(Oracle, QuantizedNumbersBeyondTheRangeAreExact) {
  Array x(BP_DTYPE_FLOAT16, {4}), scale(BP_DTYPE_FLOAT16, {}), zero(BP_DTYPE_UINT8, {});
  x.values = {60000, -60000, 256, 100};
  scale.values = {1};
  zero.values = {0};
  const Reference result = compute("QuantizeLinear", Call({&x, &scale, &zero}, {}, 1)).at(0);
  const auto answer = [&](std::vector<double> values) {
    Array seen(BP_DTYPE_UINT8, {4});
    seen.values = std::move(values);
    return judge(result, to_tensor(seen), {}).answer;
  };
  EXPECT_EQ(answer({255, 0, 255, 100}), Judgement::kRight);
  EXPECT_EQ(answer({254, 0, 255, 100}), Judgement::kWrong);
  EXPECT_EQ(answer({255, 1, 255, 100}), Judgement::kWrong);
  EXPECT_EQ(answer({255, 0, 255, 101}), Judgement::kWrong);
}

TEST(Estimate, AClippedNumberMovesWithItsLimit) {
  Array x(BP_DTYPE_FLOAT, {3}), low(BP_DTYPE_FLOAT, {});
  x.values = {-1, 0.5, 2};
  low.values = {0.25};
  const Estimate data = exact_estimate(to_tensor(x));
  Estimate limit = exact_estimate(to_tensor(low));
  limit.error = limit.typical = {0.125};
  const NodeSpec clip{.op_type = "Clip", .outputs = {0}};
  EXPECT_EQ(estimate(clip, {&data, &limit}, false).at(0).error, std::vector<double>(3, 0.125));
  EXPECT_EQ(estimate(clip, {&data}, false).at(0).error, std::vector<double>(3, 0));
}

// y = 3·x and z = (x > 0), where x is subnormal: a device that flushes may compute with 0.
TEST(Estimate, ADeviceThatFlushesMayReadSubnormalInputsAsZero) {
  GraphSpec graph{.opset = 14};
  Array x(BP_DTYPE_FLOAT16, {2}), three(BP_DTYPE_FLOAT16, {1}), zero(BP_DTYPE_FLOAT16, {1});
  x.values = {0x1p-15, 0.5};
  three.values = {3};
  for (const Array& one : {x, three, zero}) graph.values.push_back({one.dtype, one.extents, {}});
  graph.values[1].weight = to_tensor(three);
  graph.values[2].weight = to_tensor(zero);
  graph.values.push_back({BP_DTYPE_FLOAT16, {2}, {}});
  graph.values.push_back({BP_DTYPE_BOOL, {2}, {}});
  graph.nodes = {{.op_type = "Mul", .since_version = 14, .inputs = {0, 1}, .outputs = {3}},
                 {.op_type = "Greater", .since_version = 13, .inputs = {0, 2}, .outputs = {4}}};
  graph.inputs = {0};
  graph.outputs = {3, 4};
  const auto answer = [&](uint32_t value, std::vector<double> seen, bool flushes) {
    Array array(graph.values[value].dtype, {2});
    array.values = std::move(seen);
    const std::vector<Estimate> estimates = estimate(graph, {to_tensor(x)}, flushes);
    return judge(estimates.at(value).reference(), to_tensor(array), {.flushes = flushes}).answer;
  };
  for (const bool flushes : {false, true}) {
    const auto if_flushes = flushes ? Judgement::kRight : Judgement::kWrong;
    EXPECT_EQ(answer(3, {3 * 0x1p-15, 1.5}, flushes), Judgement::kRight);
    EXPECT_EQ(answer(3, {0, 1.5}, flushes), if_flushes);
    EXPECT_EQ(answer(3, {0x1p-9, 1.5}, flushes), Judgement::kWrong);
    EXPECT_EQ(answer(4, {1, 1}, flushes), Judgement::kRight);
    EXPECT_EQ(answer(4, {0, 1}, flushes), if_flushes);
    EXPECT_EQ(answer(4, {1, 0}, flushes), Judgement::kWrong);
  }
}

TEST(Oracle, AgreesWithTheNodeDataOfOnnx) {
  const char* given = std::getenv("BACKPLANE_DATA");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = given != nullptr   ? fs::path(given)
                        : cache != nullptr ? fs::path(cache) / "backplane"
                                           : fs::path(home == nullptr ? "" : home) / ".cache/backplane";
  // The expected results of RoiAlign have only four digits.
  run_suite(base / "onnx/node",
            {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_roialign_aligned_false",
             "test_roialign_aligned_true"},
            980, 166);
}

TEST(Oracle, AgreesWithTheOlderNodeData) {
  // The expected results of RoiAlign have only four digits, and those of windows are computed with 3.1415 for π.
  run_suite(
      "/usr/share/libonnx-testdata/data/node",
      {"test_roialign_aligned_false", "test_roialign_aligned_true", "test_hannwindow", "test_hannwindow_symmetric",
       "test_hammingwindow", "test_hammingwindow_symmetric", "test_blackmanwindow", "test_blackmanwindow_symmetric"},
      560, 120);
}

}  // namespace
}  // namespace backplane::conform
