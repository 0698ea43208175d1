// SPDX-License-Identifier: Apache-2.0
// Formulas over elements: their results, and how many tensors one kernel reads. Other operators at the edges of what
// their attributes and inputs may be.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using FormulasTest = OpenCl;

// The root of -infinity is NaN, and that of -0 is -0.
TEST_F(FormulasTest, ThePowerOfOneHalfIsNotTheRoot) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({7}, {-kInfinity, -0.0f, 0, 4, kInfinity, -1, std::nanf("")});
  const Environment env = opencl();
  for (const bool constant : {true, false}) {
    SCOPED_TRACE(constant);
    Graph graph;
    const uint32_t base = graph.input("x", BP_DTYPE_FLOAT, {7});
    const Tensor half = Tensor::of<float>({1}, {0.5f});
    const uint32_t exponent = constant ? graph.weight("half", half) : graph.input("half", BP_DTYPE_FLOAT, {1});
    Exec exec = env.compile(graph.finish({graph.node("Pow", "y", {base, exponent})}), only_opencl()).exec();
    exec.bind(0u, x);
    if (!constant) exec.bind(1u, half);
    exec.run();
    const std::vector<float> y = exec.output(0u).values<float>();
    EXPECT_EQ(y[0], kInfinity);
    EXPECT_EQ(y[1], 0);
    EXPECT_FALSE(std::signbit(y[1]));
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 2);
    EXPECT_EQ(y[4], kInfinity);
    EXPECT_TRUE(std::isnan(y[5]));
    EXPECT_TRUE(std::isnan(y[6]));
  }
}

// x0 + … + x6 is fused into the sum only if all tensors together are few enough.
TEST_F(FormulasTest, AKernelReadsAtMostEightTensors) {
  const Environment env = opencl();
  for (const auto& [more, kernels] : {std::pair{1, 1u}, {2, 2u}, {7, 2u}}) {
    SCOPED_TRACE(more);
    Graph graph;
    std::vector<uint32_t> inputs;
    for (int i = 0; i < 7 + more; ++i) inputs.push_back(graph.input("x" + std::to_string(i), BP_DTYPE_FLOAT, {4}));
    uint32_t sum = inputs[0];
    for (size_t i = 1; i < 7; ++i) sum = graph.node("Add", "a" + std::to_string(i), {sum, inputs[i]});
    std::vector<uint32_t> operands{sum};
    operands.insert(operands.end(), inputs.begin() + 7, inputs.end());
    Exec exec = env.compile(graph.finish({graph.node("Sum", "y", operands)}), only_opencl()).exec();
    float expected = 0;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      exec.bind(i, Tensor::of<float>({4}, std::vector<float>(4, static_cast<float>(i + 1))));
      expected += static_cast<float>(i + 1);
    }
    exec.run();
    const uint64_t launches = cl_layer().launches;
    exec.run();
    EXPECT_EQ(cl_layer().launches - launches, kernels);
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(4, expected));
  }
}

// For so few rows, B is copied for the product only if it is constant, as the copy is then made once.
TEST_F(FormulasTest, AMatrixThatIsPartlyConstantIsNotCopied) {
  constexpr int64_t kInner = 8, kHalf = 96;
  const Environment env = opencl();
  Graph graph;
  const uint32_t a = graph.input("a", BP_DTYPE_FLOAT, {4, kInner}),
                 v = graph.input("v", BP_DTYPE_FLOAT, {kInner, kHalf});
  const Tensor half = Tensor::of<float>({kInner, kHalf}, std::vector<float>(kInner * kHalf, 2));
  const uint32_t b = graph.node("Concat", "b", {graph.weight("w", half), v}, {{"axis", 1}});
  Exec exec = env.compile(graph.finish({graph.node("MatMul", "y", {a, b})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({4, kInner}, std::vector<float>(4 * kInner, 1)));
  exec.bind(1u, half);
  exec.run();
  const uint64_t launches = cl_layer().launches;
  exec.run();
  EXPECT_EQ(cl_layer().launches - launches, 3u);  // two of Concat, one product
  EXPECT_THAT(exec.output(0u).values<float>(), ::testing::Each(2 * kInner));
}

TEST_F(FormulasTest, HardSigmoidKeepsNaN) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("HardSigmoid", "y", {x})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({3}, {std::nanf(""), -9, 9}));
  exec.run();
  const std::vector<float> y = exec.output(0u).values<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 1);
}

// All casts are one kernel, which does not store the 16-bit floats.
TEST_F(FormulasTest, ACastToA16BitFloatRounds) {
  const Environment env = opencl();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{70000, -1.0001f, 3.140625f + 0x1p-11f, 1e-9f};
  for (const auto& [type, expected] : {std::pair{BP_DTYPE_FLOAT16, std::vector<float>{kInfinity, -1, 3.140625f, 0}},
                                       {BP_DTYPE_BFLOAT16, {70144, -1, 3.140625f, 0x1.12p-30f}}}) {
    SCOPED_TRACE(type);
    Graph graph;
    const uint32_t in = graph.input("x", BP_DTYPE_FLOAT, {4});
    const uint32_t narrow = graph.node("Cast", "narrow", {in}, {{"to", type}});
    const uint32_t wide = graph.node("Cast", "y", {narrow}, {{"to", BP_DTYPE_FLOAT}});
    Exec exec = env.compile(graph.finish({wide}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({4}, x));
    exec.run();
    const uint64_t launches = cl_layer().launches;
    exec.run();
    EXPECT_EQ(cl_layer().launches - launches, 1u);
    EXPECT_EQ(exec.output(0u).values<float>(), expected);
  }
}

// A bound has one element, but may have a higher rank than the input.
TEST_F(FormulasTest, BoundsOfClipDoNotBroadcast) {
  const Environment env = opencl();
  const auto clip = [&](const std::vector<int64_t>& shape, const std::vector<int64_t>& bound) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, shape), least = graph.input("least", BP_DTYPE_FLOAT, bound);
    Exec exec = env.compile(graph.finish({graph.node("Clip", "y", {x, least})}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>(shape, std::vector<float>(shape.empty() ? 1 : 3, -1)));
    exec.bind(1u, Tensor(BP_DTYPE_FLOAT, bound));
    exec.run();
    return exec.output(0u);
  };
  for (const auto& shape : {std::vector<int64_t>{}, {3}}) {
    for (const auto& bound : {std::vector<int64_t>{}, {1}, {1, 1}}) {
      const Tensor y = clip(shape, bound);
      EXPECT_EQ(y.extents(), shape);
      EXPECT_THAT(y.values<float>(), ::testing::Each(0));
    }
  }
  EXPECT_THAT(failure([&] { clip({3}, {3}); }).text(), ::testing::HasSubstr("has shape [3]; it must have one element"));
}

// 2^53 + 1 is the first positive integer that double cannot represent.
TEST_F(FormulasTest, ARangeOfInt64IsExact) {
  constexpr int64_t kStart = (int64_t{1} << 53) + 1;
  constexpr int64_t kCount = 5000;  // more than the loader computes itself
  Graph graph;
  const uint32_t start = graph.weight("start", Tensor::of<int64_t>({}, {kStart}));
  const uint32_t limit = graph.weight("limit", Tensor::of<int64_t>({}, {kStart + kCount}));
  const uint32_t delta = graph.weight("delta", Tensor::of<int64_t>({}, {1}));
  const uint32_t x = graph.input("x", BP_DTYPE_INT64, {1});
  const uint32_t range = graph.node("Range", "range", {start, limit, delta});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("Add", "y", {range, x})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<int64_t>({1}, {0}));
  exec.run();
  const std::vector<int64_t> y = exec.output(0u).values<int64_t>();
  ASSERT_EQ(y.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(y.front(), kStart);
  EXPECT_EQ(y.back(), kStart + kCount - 1);
}

TEST_F(FormulasTest, ADiagonalMayLieFarBeyondTheMatrix) {
  const Environment env = opencl();
  for (const int64_t k : {int64_t{1} << 32, INT64_MIN}) {
    SCOPED_TRACE(k);
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 2});
    Exec exec = env.compile(graph.finish({graph.node("EyeLike", "y", {x}, {{"k", k}})}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
    exec.run();
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(4, 0));
  }
}

// Short and long lines are pooled by different kernels.
TEST_F(FormulasTest, TheMaximumOfPaddingIsTheLowestValue) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Environment env = opencl();
  for (const int64_t n : {1, 8}) {
    SCOPED_TRACE(n);
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 1, n});
    NodeOptions how;
    how.attributes["kernel_shape"] = std::vector<int64_t>{1};
    how.attributes["pads"] = std::vector<int64_t>{1, 1};
    const uint32_t y = graph.Builder::node("MaxPool", {x}, how);
    Exec exec = env.compile(graph.finish({y}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({1, 1, n}, std::vector<float>(static_cast<size_t>(n), -3)));
    exec.run();
    std::vector<float> expected(static_cast<size_t>(n) + 2, -3);
    expected.front() = expected.back() = -kInfinity;
    EXPECT_EQ(exec.output(0u).values<float>(), expected);
  }
}

// The first and the last output see only padding.
TEST_F(FormulasTest, TheAverageOfPaddingIsZero) {
  const Environment env = opencl();
  for (const int64_t n : {1, 8}) {
    SCOPED_TRACE(n);
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 1, n});
    NodeOptions how;
    how.attributes["kernel_shape"] = std::vector<int64_t>{1};
    how.attributes["pads"] = std::vector<int64_t>{1, 1};
    const uint32_t y = graph.Builder::node("AveragePool", {x}, how);
    Exec exec = env.compile(graph.finish({y}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({1, 1, n}, std::vector<float>(static_cast<size_t>(n), -3)));
    exec.run();
    std::vector<float> expected(static_cast<size_t>(n) + 2, -3);
    expected.front() = expected.back() = 0;
    EXPECT_EQ(exec.output(0u).values<float>(), expected);
  }
}

// With ceil_mode, a window is computed even if it extends past the padded input by less than a stride, and even if it
// is the only window. Lines of 20 elements are pooled by a different kernel than lines of 2.
TEST_F(FormulasTest, OnlyAPartOfAWindowMayBeInside) {
  const Environment env = opencl();
  const auto pool = [&](const char* op, std::vector<int64_t> kernel, std::vector<int64_t> pads, int64_t width) {
    SCOPED_TRACE(std::string(op) + " of a width of " + std::to_string(width));
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 1, 2, width});
    NodeOptions how;
    how.attributes["kernel_shape"] = std::move(kernel);
    how.attributes["strides"] = std::vector<int64_t>{2, 2};
    how.attributes["pads"] = std::move(pads);
    how.attributes["ceil_mode"] = int64_t{1};
    if (op == std::string_view("AveragePool")) how.attributes["count_include_pad"] = int64_t{1};
    const uint32_t y = graph.Builder::node(op, {x}, how);
    Exec exec = env.compile(graph.finish({y}), only_opencl()).exec();
    std::vector<float> elements(static_cast<size_t>(2 * width));
    std::iota(elements.begin(), elements.end(), 1.0f);
    exec.bind(0u, Tensor::of<float>({1, 1, 2, width}, elements));
    exec.run();
    return exec.output(0u).values<float>();
  };
  EXPECT_EQ(pool("MaxPool", {3, 3}, {0, 0, 0, 0}, 2), (std::vector<float>{4}));
  EXPECT_EQ(pool("AveragePool", {3, 3}, {0, 0, 0, 0}, 2), (std::vector<float>{2.5f}));  // 1 to 4
  EXPECT_EQ(pool("AveragePool", {4, 4}, {1, 1, 0, 0}, 2), (std::vector<float>{10.0f / 9}));
  EXPECT_EQ(pool("MaxPool", {3, 2}, {0, 0, 0, 0}, 20), (std::vector<float>{22, 24, 26, 28, 30, 32, 34, 36, 38, 40}));
  EXPECT_EQ(pool("AveragePool", {3, 2}, {0, 0, 0, 0}, 20),
            (std::vector<float>{11.5f, 13.5f, 15.5f, 17.5f, 19.5f, 21.5f, 23.5f, 25.5f, 27.5f, 29.5f}));
  EXPECT_EQ(pool("AveragePool", {4, 2}, {1, 0, 0, 0}, 20),
            (std::vector<float>{46 / 6.0f, 54 / 6.0f, 62 / 6.0f, 70 / 6.0f, 78 / 6.0f, 86 / 6.0f, 94 / 6.0f, 102 / 6.0f,
                                110 / 6.0f, 118 / 6.0f}));
}

// In column-major order, the first spatial dimension is the innermost one. The channels are not reordered.
TEST_F(FormulasTest, AnIndexInColumnMajorOrderCountsAllSpatialDimensions) {
  const Environment env = opencl();
  for (const std::vector<int64_t>& image : {std::vector<int64_t>{5}, {3, 4}, {2, 3, 4}}) {
    SCOPED_TRACE(image.size());
    std::vector<int64_t> shape{1, 2};
    shape.insert(shape.end(), image.begin(), image.end());
    int64_t plane = 1, place = 0, index = 0;
    for (const int64_t extent : image) {
      place = place * extent + (extent - 1) / 2;  // row-major
      index += (extent - 1) / 2 * plane;
      plane *= extent;
    }
    std::vector<float> elements(static_cast<size_t>(2 * plane));
    elements[static_cast<size_t>(place)] = elements[static_cast<size_t>(plane + place)] = 1;
    Graph graph;
    NodeOptions how;
    how.outputs = 2;
    how.attributes["kernel_shape"] = image;
    how.attributes["storage_order"] = int64_t{1};
    const uint32_t y = graph.Builder::node("MaxPool", {graph.input("x", BP_DTYPE_FLOAT, shape)}, how);
    Exec exec = env.compile(graph.finish({y, y + 1}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>(shape, elements));
    exec.run();
    EXPECT_EQ(exec.output(1u).values<int64_t>(), (std::vector<int64_t>{index, plane + index}));
  }
}

TEST_F(FormulasTest, NothingCannotBePooled) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 1, -1});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("GlobalMaxPool", "y", {x})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({1, 1, 0}, {}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), ::testing::HasSubstr("'y': input 0 has no elements to pool"));
}

}  // namespace
}  // namespace backplane::opencl::testing
