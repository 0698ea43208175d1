// SPDX-License-Identifier: Apache-2.0
#include "cases/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "cases/cases.h"
#include "cases/graph_spec_builder.h"
#include "cases/model_cut.h"
#include "cases/network_case.h"
#include "judge/control.h"
#include "judge/error_propagation.h"
#include "judge/judge.h"

namespace backplane::conform {
namespace {

constexpr uint32_t kOpset = 28;

Network drawn(const Recipe& recipe, int number) {
  Random random(1, "network/" + std::to_string(number));
  return random_network(random, recipe, kOpset);
}

// The outputs of a device that rounds every result to `type` and is exact otherwise.
std::vector<onnx::Tensor> computed(const Network& network, const FloatType& type) {
  std::vector<Array> values(network.spec.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (network.spec.values[i].weight) values[i] = to_array(*network.spec.values[i].weight);
  }
  for (size_t i = 0; i < network.inputs.size(); ++i) values[network.spec.inputs[i]] = to_array(network.inputs[i]);
  for (const NodeSpec& node : network.spec.nodes) {
    std::vector<const Array*> inputs;
    for (const uint32_t input : node.inputs) inputs.push_back(input == BP_NONE ? nullptr : &values[input]);
    References results =
        compute(node.op_type, Call(inputs, node.attributes, static_cast<uint32_t>(node.outputs.size())));
    for (size_t o = 0; o < results.size(); ++o) {
      Array& value = values[node.outputs[o]] = std::move(results[o].value);
      if (!is_float(value.dtype)) continue;
      for (double& x : value.values) x = type.round(x);
    }
  }
  std::vector<onnx::Tensor> outputs;
  for (const uint32_t output : network.spec.outputs) outputs.push_back(to_tensor(values[output]));
  return outputs;
}

bool is_right(const Network& network, const std::vector<onnx::Tensor>& outputs) {
  const std::vector<Estimate> estimates = estimate(network.spec, network.inputs, false);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (judge(estimates[network.spec.outputs[o]].reference(), outputs[o], {}).answer == Judgement::kWrong) return false;
  }
  return true;
}

TEST(Network, AreValidAndAlwaysTheSame) {
  for (int i = 0; i < 50; ++i) {
    const Network network = drawn({12}, i), again = drawn({12}, i);
    EXPECT_EQ(serialize(network.spec), serialize(again.spec));
    EXPECT_EQ(network.spec.nodes.size(), 12u);
    EXPECT_FALSE(network.spec.outputs.empty());
    std::set<uint32_t> known(network.spec.inputs.begin(), network.spec.inputs.end());
    for (uint32_t v = 0; v < network.spec.values.size(); ++v) {
      if (network.spec.values[v].weight) known.insert(v);
    }
    for (const NodeSpec& node : network.spec.nodes) {
      for (const uint32_t input : node.inputs) EXPECT_TRUE(input == BP_NONE || known.contains(input));
      known.insert(node.outputs.begin(), node.outputs.end());
    }
  }
}

TEST(Network, ADeviceThatRoundsEachNodeIsRight) {
  for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}) {
    for (int i = 0; i < 100; ++i) {
      const Network network = drawn({20, dtype}, i);
      EXPECT_TRUE(is_right(network, computed(network, float_type(dtype)))) << "type " << dtype << ", graph " << i;
    }
  }
}

// Inputs and outputs are fp32. A few graphs pass, because they only move data or use integers.
TEST(Network, ADeviceThatComputesWithSixteenBitsIsWrong) {
  int wrong = 0;
  for (int i = 0; i < 100; ++i) {
    const Network network = drawn({20}, i);
    wrong += !is_right(network, computed(network, float_type(BP_DTYPE_FLOAT16)));
  }
  EXPECT_GE(wrong, 95);
}

TEST(Network, IslandsAreConvexAndHaveEveryAllowedNodeOnce) {
  for (int i = 0; i < 50; ++i) {
    const Network network = drawn({30}, i);
    std::vector<bool> mask(30);
    Random random(2, std::to_string(i));
    for (size_t n = 0; n < mask.size(); ++n) mask[n] = random.integer(0, 2) != 0;
    size_t nodes = 0;
    for (const Network& island : islands(network, mask)) {
      nodes += island.spec.nodes.size();
      EXPECT_EQ(island.inputs.size(), island.spec.inputs.size());
      EXPECT_TRUE(is_right(island, computed(island, float_type(BP_DTYPE_FLOAT))));
    }
    EXPECT_EQ(nodes, static_cast<size_t>(std::count(mask.begin(), mask.end(), true)));
  }
}

TEST(Cases, EveryOperatorOfACaseHasAnOracle) {
  for (const OpCase& one : op_cases()) EXPECT_NO_THROW(find_operator(one.op)) << one.name;
  std::string written;
  for (const NetworkCase& one : control_networks()) written += " " + one.name;
  for (const ControlOperator& op : control_operators()) {
    EXPECT_NE(written.find(" " + std::string(op.name) + "/"), std::string::npos) << op.name;
  }
}

TEST(Cases, EveryProfileHasThem) {
  std::set<std::string_view> seen;
  for (const OpCase& one : op_cases()) seen.insert(one.profile);
  for (const NetworkCase& one : control_networks()) seen.insert(one.profile);
  for (const NetworkCase& one : dynamic_networks()) seen.insert(one.profile);
  std::set<std::string_view> known;
  for (const Profile& profile : profiles()) known.insert(profile.name);
  EXPECT_EQ(seen, known);
}

// The sanitizers find products of these numbers that exceed 64 bits.
TEST(ModelCut, AttributesOfAnySizeAreLeftOut) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const auto& [group, dilation] : {std::pair{kHuge, int64_t{1}}, {-kHuge, 1}, {0, 1}, {1, kHuge}, {1, -kHuge}}) {
    Model model;
    model.nodes.push_back({"Conv",
                           {"x", "w"},
                           {"y"},
                           {{"auto_pad", std::string("NOTSET")},
                            {"dilations", Extents{dilation, dilation}},
                            {"group", group},
                            {"kernel_shape", Extents{3, 3}},
                            {"pads", Extents{0, 0, 0, 0}},
                            {"strides", Extents{1, 1}}},
                           true});
    model.nodes.push_back({"Relu", {"y"}, {"z"}, {}, true});
    model.weights["w"] = to_tensor(Array(BP_DTYPE_FLOAT, {2, 3, 3, 3}));
    model.usable = 2;
    Random random(1, "cut");
    EXPECT_FALSE(cut_from(model, random, kOpset)) << group << " " << dilation;
  }
}

// The operators listed here are not in random graphs: their results are discontinuous, or they compute on 8-bit
// numbers.
TEST(Cases, OtherOperatorsHaveABoundBehindThem) {
  const std::set<std::string_view> without = {
      "Mod",         "ArgMax",        "ArgMin",      "QuantizeLinear",        "MatMulInteger",
      "ConvInteger", "QLinearMatMul", "QLinearConv", "DynamicQuantizeLinear", "DequantizeLinear"};
  for (const Operator* op : all_operators()) {
    const std::string_view profile = plain_case(op->name).profile;
    if (profile == kExtended || profile == kMicrosoft) continue;  // graphs use the other profiles' operators
    EXPECT_EQ(find_error_propagation(op->name) == nullptr, without.contains(op->name)) << op->name;
  }
}

}  // namespace
}  // namespace backplane::conform
