// SPDX-License-Identifier: Apache-2.0
#include "commands/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "host/graph.h"

namespace backplane::conform {
namespace {

onnx::Value floats(const std::vector<float>& numbers) {
  onnx::Value value;
  value.tensor.dtype = BP_DTYPE_FLOAT;
  value.tensor.extents = {static_cast<int64_t>(numbers.size())};
  value.tensor.bytes.resize(numbers.size() * sizeof(float));
  std::memcpy(value.tensor.bytes.data(), numbers.data(), value.tensor.bytes.size());
  return value;
}

onnx::Tensor fair(size_t count) {
  return floats(std::vector<float>(count, 0.5f)).tensor;
}

std::vector<float> alternating(float even, float odd) {
  std::vector<float> numbers(400);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 2 == 0 ? even : odd;
  return numbers;
}

TEST(Statistics, HalfOfFairDrawsAreOnes) {
  Draws draws(Distribution::kBernoulli, fair(400));
  EXPECT_EQ(draws.add({floats(alternating(0, 1))}), "");
  EXPECT_EQ(draws.fault(), "");
}

TEST(Statistics, AConstantGeneratorIsCaught) {
  Draws draws(Distribution::kBernoulli, fair(400));
  EXPECT_EQ(draws.add({floats(std::vector<float>(400, 1.0f))}), "");
  EXPECT_NE(draws.fault(), "");
}

TEST(Statistics, EqualRunsAreACoincidenceOnlyIfLittleIsLeftToChance) {
  Draws one(Distribution::kBernoulli, fair(1)), certain(Distribution::kBernoulli, floats({1.0f}).tensor);
  for (int run = 0; run < 64; ++run) {
    EXPECT_FALSE(one.must_vary());
    EXPECT_EQ(one.add({floats({1.0f})}), "");
    EXPECT_EQ(certain.add({floats({1.0f})}), "");
  }
  EXPECT_FALSE(certain.must_vary());
  Draws many(Distribution::kBernoulli, fair(10));
  for (int run = 0; run < 64; ++run) EXPECT_EQ(many.add({floats(std::vector<float>(10, 1.0f))}), "");
  EXPECT_TRUE(many.must_vary());
}

TEST(Statistics, ImpossibleValuesAreCaughtAtOnce) {
  Draws draws(Distribution::kBernoulli, floats({0.0f, 0.5f}).tensor);
  EXPECT_NE(draws.add({floats({1.0f, 0.0f})}), "");
  EXPECT_NE(draws.add({floats({0.0f, 0.25f})}), "");
}

TEST(Statistics, DropoutScalesKeptElements) {
  Draws draws(Distribution::kDropout, floats(std::vector<float>(400, 3.0f)).tensor, 0.5);
  EXPECT_EQ(draws.add({floats(alternating(0, 6)), floats(alternating(0, 1))}), "");
  EXPECT_EQ(draws.fault(), "");
  EXPECT_NE(draws.add({floats(alternating(0, 3)), floats(alternating(0, 1))}), "");  // not scaled
  EXPECT_NE(draws.add({floats(alternating(0, NAN)), floats(alternating(0, 1))}), "");
  EXPECT_NE(draws.add({floats(alternating(0, 6)), floats(alternating(1, 0))}), "");  // disagrees with the mask
}

TEST(Statistics, OutputsOfAnotherSizeAreRefused) {
  Draws draws(Distribution::kBernoulli, fair(400));
  EXPECT_THROW(draws.add({floats({1.0f})}), onnx::Malformed);
}

// Input 0 is x, and the nodes' values follow the inputs.
GraphSpec graph_of(const std::vector<bp_dtype_t>& inputs, std::vector<NodeSpec> nodes) {
  GraphSpec spec;
  for (const bp_dtype_t dtype : inputs) {
    spec.inputs.push_back(static_cast<uint32_t>(spec.values.size()));
    spec.values.push_back({.dtype = dtype, .extents = {4}});
  }
  for (const NodeSpec& node : nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i) spec.values.push_back({.extents = {4}});
  }
  spec.outputs = nodes.back().outputs;
  spec.nodes = std::move(nodes);
  return spec;
}

bool is_random(const GraphSpec& spec, const std::vector<onnx::Value>& inputs) {
  const Graph graph(spec);
  return draws_of(view::Graph(graph.table()), inputs).has_value();
}

onnx::Value truth(bool value) {
  onnx::Value result;
  result.tensor = {BP_DTYPE_BOOL, {}, {std::byte{value}}};
  return result;
}

TEST(Statistics, OnlyTrainingDropoutIsRandom) {
  const onnx::Value x = floats({1, 2, 3, 4}), ratio = floats({0.5f});
  const GraphSpec all = graph_of({BP_DTYPE_FLOAT, BP_DTYPE_FLOAT, BP_DTYPE_BOOL},
                                 {{.op_type = "Dropout", .inputs = {0, 1, 2}, .outputs = {3, 4}}});
  EXPECT_TRUE(is_random(all, {x, ratio, truth(true)}));
  EXPECT_FALSE(is_random(all, {x, ratio, truth(false)}));
  const GraphSpec no_ratio =
      graph_of({BP_DTYPE_FLOAT, BP_DTYPE_BOOL}, {{.op_type = "Dropout", .inputs = {0, BP_NONE, 1}, .outputs = {2, 3}}});
  EXPECT_TRUE(is_random(no_ratio, {x, truth(true)}));
  EXPECT_FALSE(is_random(no_ratio, {x, truth(false)}));
  const GraphSpec no_mode =
      graph_of({BP_DTYPE_FLOAT, BP_DTYPE_FLOAT}, {{.op_type = "Dropout", .inputs = {0, 1}, .outputs = {2, 3}}});
  EXPECT_FALSE(is_random(no_mode, {x, ratio}));
}

TEST(Statistics, OnlyComparisonsWithADrawAreRandom) {
  const onnx::Value x = floats({0.1f, 0.2f, 0.3f, 0.4f});
  for (const char* op : {"Greater", "Less"}) {
    const NodeSpec draw{.op_type = "RandomUniformLike", .inputs = {0}, .outputs = {1}};
    EXPECT_TRUE(is_random(graph_of({BP_DTYPE_FLOAT}, {draw, {.op_type = op, .inputs = {1, 0}, .outputs = {2}}}), {x}));
    EXPECT_TRUE(is_random(graph_of({BP_DTYPE_FLOAT}, {draw, {.op_type = op, .inputs = {0, 1}, .outputs = {2}}}), {x}));
    EXPECT_FALSE(is_random(graph_of({BP_DTYPE_FLOAT}, {draw, {.op_type = op, .inputs = {0, 0}, .outputs = {2}}}), {x}));
    NodeSpec wide = draw;
    wide.attributes = {{"high", 2.0f}, {"low", 0.0f}};
    EXPECT_FALSE(is_random(graph_of({BP_DTYPE_FLOAT}, {wide, {.op_type = op, .inputs = {1, 0}, .outputs = {2}}}), {x}));
    const NodeSpec alone{.op_type = op, .inputs = {0, 1}, .outputs = {2}};
    EXPECT_FALSE(is_random(graph_of({BP_DTYPE_FLOAT, BP_DTYPE_FLOAT}, {alone}), {x, x})) << op;
  }
}

TEST(Statistics, TheExpansionOfBernoulliKnowsWhichSideIsDrawn) {
  const onnx::Value certain = floats({1, 1, 1, 1});
  const auto fault = [&](const char* op, std::vector<uint32_t> inputs) {
    const Graph graph(graph_of({BP_DTYPE_FLOAT}, {{.op_type = "RandomUniformLike", .inputs = {0}, .outputs = {1}},
                                                  {.op_type = op, .inputs = std::move(inputs), .outputs = {2}}}));
    return draws_of(view::Graph(graph.table()), {certain}).value().add({certain});
  };
  EXPECT_EQ(fault("Less", {1, 0}), "");     // draw < 1
  EXPECT_EQ(fault("Greater", {0, 1}), "");  // 1 > draw
  EXPECT_NE(fault("Greater", {1, 0}), "");  // draw > 1
  EXPECT_NE(fault("Less", {0, 1}), "");     // 1 < draw
}

}  // namespace
}  // namespace backplane::conform
