// SPDX-License-Identifier: Apache-2.0
// Random numbers repeat in each run with a seed, differ from run to run without one, and have the expected
// distribution. The seeds are fixed, so the results of these tests never change; a correct generator fails for about
// one seed in a million.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "kernels/common/float16.h"
#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using Floats = std::vector<float>;

// Returns the results of two runs of one program. The node has no inputs.
std::pair<Floats, Floats> draw_twice(Plugin& plugin, const std::string& op_type, Attributes attributes) {
  attributes["shape"] = std::vector<int64_t>{1000};
  GraphBuilder b;
  b.node(op_type, 22, {}, {"y"}, BP_DTYPE_FLOAT, attributes).output("y");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.status, BP_OK) << program.text;
  const auto draw = [&] { return program.run({}).outputs.at(0).as<float>(); };
  Floats first = draw();
  return {first, draw()};
}

TEST(Random, IsDrawnAnewInEachRunUnlessThereIsASeed) {
  Plugin plugin;
  for (const char* op_type : {"RandomNormal", "RandomUniform"}) {
    const auto [free_first, free_second] = draw_twice(plugin, op_type, {});
    EXPECT_NE(free_first, free_second) << op_type;
    const auto [first, second] = draw_twice(plugin, op_type, {{"seed", 3.0f}});
    EXPECT_EQ(first, second) << op_type;
    EXPECT_EQ(first, draw_twice(plugin, op_type, {{"seed", 3.0f}}).first) << op_type;
    EXPECT_NE(first, draw_twice(plugin, op_type, {{"seed", 4.0f}}).first) << op_type;
  }
}

constexpr int64_t kDraws = 100000;

Floats to_floats(const HostTensor& tensor) {
  if (tensor.dtype == BP_DTYPE_FLOAT) return tensor.as<float>();
  if (tensor.dtype == BP_DTYPE_DOUBLE) {
    const auto numbers = tensor.as<double>();
    return {numbers.begin(), numbers.end()};
  }
  Floats floats;
  for (const Half half : tensor.as<Half>()) floats.push_back(static_cast<float>(half));
  return floats;
}

// Runs a node with a fixed seed once; its inputs are inputs of the program.
HostTensor draw(const std::string& op_type, bp_dtype_t dtype, Attributes attributes, std::vector<HostTensor> inputs) {
  Plugin plugin;
  attributes["seed"] = 11.0f;
  GraphBuilder b;
  std::vector<std::string> names;
  for (const HostTensor& input : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    b.input(names.back(), input.dtype, input.extents);
  }
  b.node(op_type, 22, names, {"y"}, dtype, attributes).output("y");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.status, BP_OK) << program.text;
  return program.run(std::move(inputs)).outputs.at(0);
}

// The Kolmogorov-Smirnov statistic: the largest difference between the empirical and the expected distribution
// function, in units of 1 / sqrt(count). For a correct generator, it exceeds 2.7 with probability 2 exp(-2 * 2.7^2),
// about 1e-6.
double distance(Floats draws, const std::function<double(double)>& share_below) {
  std::sort(draws.begin(), draws.end());
  const auto n = static_cast<double>(draws.size());
  double worst = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const double share = share_below(double{draws[i]}), position = static_cast<double>(i);
    worst = std::max({worst, std::abs(share - position / n), std::abs(share - (position + 1) / n)});
  }
  return worst * std::sqrt(n);
}

// The correlation of each number with the next one, in units of the standard deviation for independent numbers.
double correlation_with_next(const Floats& draws) {
  const auto n = static_cast<double>(draws.size());
  const double mean = std::accumulate(draws.begin(), draws.end(), 0.0) / n;
  double product = 0, square = 0;
  for (size_t i = 0; i + 1 < draws.size(); ++i) {
    product += (draws[i] - mean) * (draws[i + 1] - mean);
    square += (draws[i] - mean) * (draws[i] - mean);
  }
  return product / square * std::sqrt(n);
}

TEST(Random, NormalAndUniformFollowTheirLaw) {
  const auto normal = [](double x) { return 0.5 * std::erfc(-(x - 3) / 2 / std::numbers::sqrt2); };
  const auto uniform = [](double x) { return std::clamp((x + 1) / 5, 0.0, 1.0); };
  const HostTensor like = HostTensor::of<int8_t>(BP_DTYPE_INT8, {kDraws / 100, 100}, std::vector<int8_t>(kDraws));
  for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_DOUBLE, BP_DTYPE_FLOAT16}) {
    // fp16 rounds: near 4, adjacent values are 2^-8 apart, which changes the distribution by up to 2^-9 * density.
    const double bound = dtype == BP_DTYPE_FLOAT16 ? 2.7 + 0x1p-9 * 0.2 * std::sqrt(double{kDraws}) : 2.7;
    for (const bool by_shape : {true, false}) {
      const auto draws = [&](const std::string& op_type, Attributes attributes) {
        attributes["dtype"] = int64_t{dtype};
        if (by_shape) attributes["shape"] = std::vector<int64_t>{kDraws};
        return to_floats(draw(by_shape ? op_type : op_type + "Like", dtype, attributes,
                              by_shape ? std::vector<HostTensor>{} : std::vector<HostTensor>{like}));
      };
      const Floats normals = draws("RandomNormal", {{"mean", 3.0f}, {"scale", 2.0f}});
      const Floats uniforms = draws("RandomUniform", {{"low", -1.0f}, {"high", 4.0f}});
      ASSERT_EQ(normals.size(), size_t{kDraws});
      EXPECT_LT(distance(normals, normal), bound) << "dtype " << dtype;
      EXPECT_LT(distance(uniforms, uniform), bound) << "dtype " << dtype;
      EXPECT_GT(distance(normals, uniform), 20) << "a wrong distribution is not detected";
      EXPECT_LT(std::abs(correlation_with_next(normals)), 5);
      EXPECT_LT(std::abs(correlation_with_next(uniforms)), 5);
    }
  }
}

TEST(Random, BernoulliDrawsEachElementWithItsOwnProbability) {
  Floats chances(kDraws);
  for (size_t i = 0; i < chances.size(); ++i) chances[i] = static_cast<float>(i % 5) / 4;
  const HostTensor given = HostTensor::of<float>(BP_DTYPE_FLOAT, {kDraws}, chances);
  const auto drawn = draw("Bernoulli", BP_DTYPE_INT32, {{"dtype", int64_t{BP_DTYPE_INT32}}}, {given}).as<int32_t>();
  ASSERT_EQ(drawn.size(), chances.size());
  for (size_t group = 0; group < 5; ++group) {
    double ones = 0;
    for (size_t i = group; i < drawn.size(); i += 5) {
      ASSERT_TRUE(drawn[i] == 0 || drawn[i] == 1);
      ones += drawn[i];
    }
    const double n = kDraws / 5, p = static_cast<double>(group) / 4;
    EXPECT_LE(std::abs(ones - n * p), 5 * std::sqrt(n * p * (1 - p))) << "probability " << p;
  }
}

TEST(Random, MultinomialDrawsClassesByTheirWeight) {
  // Each row has unnormalized log-probabilities; the second row is the first one reversed and shifted.
  const Floats logits = {std::log(1.0f),  std::log(2.0f),  std::log(3.0f),  std::log(4.0f),
                         std::log(40.0f), std::log(30.0f), std::log(20.0f), std::log(10.0f)};
  const HostTensor given = HostTensor::of<float>(BP_DTYPE_FLOAT, {2, 4}, logits);
  const HostTensor drawn =
      draw("Multinomial", BP_DTYPE_INT64, {{"dtype", int64_t{BP_DTYPE_INT64}}, {"sample_size", kDraws}}, {given});
  const auto classes = drawn.as<int64_t>();
  ASSERT_EQ(drawn.extents, (std::vector<int64_t>{2, kDraws}));
  for (size_t row = 0; row < 2; ++row) {
    double counts[4] = {};
    for (size_t i = 0; i < kDraws; ++i) {
      const int64_t chosen = classes[row * kDraws + i];
      ASSERT_TRUE(chosen >= 0 && chosen < 4);
      ++counts[chosen];
    }
    double chi_square = 0;  // with three degrees of freedom, above 31 with probability 1e-6
    for (size_t c = 0; c < 4; ++c) {
      const double expected = static_cast<double>(kDraws) * static_cast<double>(row == 0 ? c + 1 : 4 - c) / 10;
      chi_square += (counts[c] - expected) * (counts[c] - expected) / expected;
    }
    EXPECT_LT(chi_square, 31) << "row " << row;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing
