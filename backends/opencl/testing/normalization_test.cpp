// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization with scales of all shapes and types.
#include <gmock/gmock.h>

#include <cmath>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;
using NormalizationTest = OpenCl;
using Shape = std::vector<int64_t>;

std::vector<float> ramp(const Shape& shape, float first) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(first + static_cast<float>(i * 5 % 7) * 0.25f);
  return all;
}

// Element i of an operand that broadcasts to `shape`.
float broadcast_at(const std::vector<float>& elements, const Shape& own, const Shape& shape, size_t i) {
  size_t at = 0, step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const size_t c = i % static_cast<size_t>(shape[d]);
    i /= static_cast<size_t>(shape[d]);
    if (const size_t skip = shape.size() - own.size(); d >= skip) {
      if (own[d - skip] != 1) at += c * step;
      step *= static_cast<size_t>(own[d - skip]);
    }
  }
  return elements[at];
}

struct Case {
  Shape x;
  int64_t axis;
  Shape scale, shift;  // no shift: RMSNormalization
};

std::vector<float> expected(const Case& c, const std::vector<float>& x, const std::vector<float>& scale,
                            const std::vector<float>& shift) {
  size_t n = 1;
  for (size_t d = static_cast<size_t>(c.axis); d < c.x.size(); ++d) n *= static_cast<size_t>(c.x[d]);
  std::vector<float> y;
  for (size_t row = 0; row < x.size() / n; ++row) {
    double mean = 0, squares = 0;
    if (!shift.empty())
      for (size_t i = 0; i < n; ++i) mean += static_cast<double>(x[row * n + i]) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) squares += std::pow(static_cast<double>(x[row * n + i]) - mean, 2);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (size_t i = row * n; i < row * n + n; ++i) {
      const double own = shift.empty() ? 0 : static_cast<double>(broadcast_at(shift, c.shift, c.x, i));
      y.push_back(static_cast<float>((static_cast<double>(x[i]) - mean) * factor *
                                         static_cast<double>(broadcast_at(scale, c.scale, c.x, i)) +
                                     own));
    }
  }
  return y;
}

void expect_near(const std::vector<float>& y, const std::vector<float>& wanted) {
  ASSERT_EQ(y.size(), wanted.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 2e-6 * (1 + std::fabs(wanted[i]))) << i;
}

TEST_F(NormalizationTest, ScaleAndShiftBroadcastToTheInput) {
  const Environment env = opencl();
  const Case cases[] = {
      {{3, 3}, 1, {3}, {3}},         {{3, 3}, 1, {3, 1}, {3}},          {{3, 3}, 1, {3}, {3, 1}},
      {{3, 3}, 1, {3, 3}, {3, 1}},   {{3, 3}, 1, {1, 1}, {1, 3}},       {{2, 3, 4}, 1, {2, 1, 4}, {3, 1}},
      {{2, 3, 4}, 2, {3, 1}, {1}},   {{2, 3, 4}, 2, {2, 1, 1}, {3, 4}}, {{2, 3, 4}, 1, {1, 3, 1}, {}},
      {{2, 3, 4}, 1, {2, 3, 4}, {}}, {{4, 4}, 1, {4, 1}, {}},           {{2, 3}, 0, {2, 1}, {3}},
      {{2, 3, 4}, 2, {}, {}},        {{1, 4}, 1, {1, 4}, {1, 1}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.x) + " " + std::to_string(c.axis) + " " +
                 ::testing::PrintToString(c.scale) + " " + ::testing::PrintToString(c.shift));
    const std::vector<float> x = ramp(c.x, -1), scale = ramp(c.scale, 0.5f),
                             shift = c.shift.empty() ? std::vector<float>() : ramp(c.shift, -3);
    Graph graph;
    std::vector<uint32_t> inputs{graph.input("x", BP_DTYPE_FLOAT, c.x), graph.input("scale", BP_DTYPE_FLOAT, c.scale)};
    if (!c.shift.empty()) inputs.push_back(graph.input("shift", BP_DTYPE_FLOAT, c.shift));
    const char* const op = c.shift.empty() ? "RMSNormalization" : "LayerNormalization";
    const uint32_t y = graph.node(op, "y", inputs, {{"axis", c.axis}});
    Exec exec = env.compile(graph.finish({y}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>(c.x, x));
    exec.bind(1u, Tensor::of<float>(c.scale, scale));
    if (!c.shift.empty()) exec.bind(2u, Tensor::of<float>(c.shift, shift));
    exec.run();
    expect_near(exec.output(0u).values<float>(), expected(c, x, scale, shift));
  }
}

TEST_F(NormalizationTest, MeanAndDeviationDoNotDependOnTheScale) {
  const Environment env = opencl();
  for (const Shape& scale : {Shape{4}, Shape{2, 1}}) {
    Graph graph;
    NodeOptions how;
    how.outputs = 3;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 4});
    const uint32_t y = graph.Builder::node("LayerNormalization",
                                           {x, graph.weight("s", Tensor::of<float>(scale, ramp(scale, 1)))}, how);
    Exec exec = env.compile(graph.finish({y, y + 1, y + 2}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({2, 4}, {1, 2, 3, 4, -2, -2, 2, 2}));
    exec.run();
    EXPECT_EQ(exec.output(1u).values<float>(), (std::vector<float>{2.5f, 0}));
    expect_near(exec.output(2u).values<float>(), {1 / std::sqrt(1.25001f), 1 / std::sqrt(4.00001f)});
  }
}

// The input and the scale are cast from fp32; the result, which has the type of the scale, is cast back to fp32.
TEST_F(NormalizationTest, TheResultHasTheTypeOfTheScale) {
  const Environment env = opencl();
  constexpr bp_dtype_t kTypes[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_DOUBLE};
  const Shape shape{3, 4};
  const std::vector<float> x = ramp(shape, -1);
  for (const Shape& scale_shape : {Shape{4}, Shape{3, 1}}) {
    const std::vector<float> scale = ramp(scale_shape, 0.5f);
    const std::vector<float> wanted = expected({shape, 1, scale_shape, {}}, x, scale, {});
    for (const bp_dtype_t type : kTypes) {
      if (type != BP_DTYPE_FLOAT && scale_shape.size() == 2) continue;
      for (const bp_dtype_t of_scale : kTypes) {
        SCOPED_TRACE(std::to_string(type) + " " + std::to_string(of_scale));
        Graph graph;
        const uint32_t a = graph.input("x", BP_DTYPE_FLOAT, shape), b = graph.input("s", BP_DTYPE_FLOAT, scale_shape);
        const uint32_t y = graph.node(
            "RMSNormalization", "y",
            {graph.node("Cast", "xc", {a}, {{"to", type}}), graph.node("Cast", "sc", {b}, {{"to", of_scale}})});
        Exec exec =
            env.compile(graph.finish({graph.node("Cast", "yc", {y}, {{"to", BP_DTYPE_FLOAT}})}), only_opencl()).exec();
        exec.bind(0u, Tensor::of<float>(shape, x));
        exec.bind(1u, Tensor::of<float>(scale_shape, scale));
        exec.run();
        const std::vector<float> found = exec.output(0u).values<float>();
        ASSERT_EQ(found.size(), wanted.size());
        // The operands are exact in all types; the result is rounded to the type of the scale.
        const float error = of_scale == BP_DTYPE_BFLOAT16 ? 0x1p-8f : of_scale == BP_DTYPE_FLOAT16 ? 0x1p-11f : 2e-6f;
        for (size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], wanted[i], (error + 2e-6f) * std::fabs(wanted[i])) << i;
      }
    }
  }
}

TEST_F(NormalizationTest, AScaleThatDoesNotBroadcastIsRefused) {
  const Environment env = opencl();
  for (const Shape& scale : {Shape{2, 3}, Shape{1, 3, 2}, Shape{3, 1, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(scale));
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3, 2});
    const uint32_t s = graph.weight("s", Tensor::of<float>(scale, ramp(scale, 1)));
    const Error error = failure([&] {
      Exec exec =
          env.compile(graph.finish({graph.node("RMSNormalization", "y", {x, s}, {{"axis", 0}})}), only_opencl()).exec();
      exec.bind(0u, Tensor::of<float>({3, 2}, ramp({3, 2}, 1)));
      exec.run();
    });
    EXPECT_THAT(error.text(), HasSubstr("broadcast"));
  }
}

TEST_F(NormalizationTest, StatisticsInDoubleRequireAnInputInDouble) {
  const Environment env = opencl();
  for (const char* op : {"LayerNormalization", "RMSNormalization"}) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3, 2});
    const uint32_t s = graph.weight("s", Tensor::of<float>({2}, {1, 1}));
    const uint32_t y = graph.node(op, "y", {x, s}, {{"stash_type", BP_DTYPE_DOUBLE}});
    const Error error = failure([&] { env.compile(graph.finish({y}), only_opencl()); });
    EXPECT_THAT(error.text(), HasSubstr("stash_type is double, but input 0 is not"));
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
