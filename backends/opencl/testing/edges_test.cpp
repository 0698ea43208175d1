// SPDX-License-Identifier: Apache-2.0
// Operators whose indices, axes, extents and blocks are at the edges of what they may be.
#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using EdgesTest = OpenCl;

// The results of OneHot with depth 3.
template <class T>
std::vector<float> one_hot(const Environment& env, bp_dtype_t dtype, const std::vector<T>& indices) {
  const std::vector<int64_t> shape{static_cast<int64_t>(indices.size())};
  Graph graph;
  const uint32_t x = graph.input("x", dtype, shape);
  const uint32_t depth = graph.weight("depth", Tensor::of<int64_t>({}, {3}));
  const uint32_t values = graph.weight("values", Tensor::of<float>({2}, {0, 1}));
  Exec exec = env.compile(graph.finish({graph.node("OneHot", "y", {x, depth, values})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<T>(shape, indices));
  exec.run();
  return exec.output(0u).values<float>();
}

// Converted to int64, the largest uint64 would be -1: the last element.
TEST_F(EdgesTest, IndicesBeyondInt64AreOutOfRange) {
  const Environment env = opencl();
  EXPECT_THAT(one_hot<uint64_t>(env, BP_DTYPE_UINT64, {1, UINT64_MAX}), ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_THAT(one_hot<float>(env, BP_DTYPE_FLOAT, {1.5f, std::nanf(""), 1e30f, -1}),
              ElementsAre(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
}

// One length of block divides the extent, one leaves a shorter last block, and one is longer than the extent.
TEST_F(EdgesTest, TheLastBlockMayBeShorter) {
  const Environment env = opencl();
  for (const int64_t axis : {0, 1}) {
    for (const int64_t block : {3, 4, 9}) {
      SCOPED_TRACE(std::to_string(axis) + " " + std::to_string(block));
      const int64_t count = (6 + block - 1) / block;
      const std::vector<int64_t> shape = axis == 0 ? std::vector<int64_t>{6, 2} : std::vector<int64_t>{2, 6};
      const std::vector<int64_t> blocks = axis == 0 ? std::vector<int64_t>{count, 2} : std::vector<int64_t>{2, count};
      std::vector<float> scales;
      std::vector<uint8_t> zeros;
      for (int64_t i = 0; i < 2 * count; ++i) {
        scales.push_back(std::ldexp(1.0f, static_cast<int>(i)));
        zeros.push_back(static_cast<uint8_t>(10 * i + 20));
      }
      std::vector<float> x;
      std::vector<uint8_t> expected;
      for (int64_t i = 0; i < 12; ++i) {
        const int64_t row = i / shape[1], column = i % shape[1];
        const int64_t at = axis == 0 ? row / block * 2 + column : row * count + column / block;
        x.push_back(static_cast<float>(i - 6) * scales[at]);
        expected.push_back(static_cast<uint8_t>(i - 6 + zeros[at]));
      }
      Graph graph;
      const uint32_t scale = graph.weight("scale", Tensor::of<float>(blocks, scales));
      const uint32_t zero = graph.weight("zero", Tensor::of<uint8_t>(blocks, zeros));
      const std::map<std::string, int64_t> how{{"axis", axis}, {"block_size", block}};
      const uint32_t q = graph.node("QuantizeLinear", "q", {graph.input("x", BP_DTYPE_FLOAT, shape), scale, zero}, how);
      const uint32_t y = graph.node("DequantizeLinear", "y", {q, scale, zero}, how);
      Exec exec = env.compile(graph.finish({q, y}), only_opencl()).exec();
      exec.bind(0u, Tensor::of<float>(shape, x));
      exec.run();
      EXPECT_EQ(exec.output(0u).values<uint8_t>(), expected);
      EXPECT_EQ(exec.output(1u).values<float>(), x);
    }
  }
}

TEST_F(EdgesTest, ScalesOfResizeAreMultipliedAsFloats) {
  const Environment env = opencl();
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 80});
  const uint32_t scales = graph.weight("scales", Tensor::of<float>({2}, {1, 1.3f}));
  Exec exec = env.compile(graph.finish({graph.node("Resize", "y", {x, BP_NONE, scales})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({1, 80}, std::vector<float>(80, 2)));
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{1, 104}));
}

// The scale is 0, so a window of the input would have infinitely many elements.
TEST_F(EdgesTest, AResultOfResizeMayBeEmpty) {
  const Environment env = opencl();
  Graph graph;
  NodeOptions how;
  how.attributes["mode"] = std::string("linear");
  how.attributes["antialias"] = int64_t{1};
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {1, 4});
  const uint32_t sizes = graph.weight("sizes", Tensor::of<int64_t>({2}, {1, 0}));
  Exec exec =
      env.compile(graph.finish({graph.Builder::node("Resize", {x, BP_NONE, BP_NONE, sizes}, how)}), only_opencl())
          .exec();
  exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {1, 4}));
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{1, 0}));
}

TEST_F(EdgesTest, ARangeLeavesNaNOut) {
  std::vector<float> x(301, 0.5f);
  x[7] = x[299] = std::nanf("");
  x[100] = 1;
  x[300] = -1.55f;
  Graph graph;
  NodeOptions how;
  how.outputs = 3;
  const uint32_t y = graph.Builder::node("DynamicQuantizeLinear", {graph.input("x", BP_DTYPE_FLOAT, {301})}, how);
  Exec exec = opencl().compile(graph.finish({y + 1, y + 2}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({301}, x));
  exec.run();
  EXPECT_FLOAT_EQ(exec.output(0u).values<float>()[0], 0.01f);
  EXPECT_EQ(exec.output(1u).values<uint8_t>()[0], 155);
}

TEST_F(EdgesTest, AStepMayBeLongerThanAnyExtent) {
  const Environment env = opencl();
  for (const auto& [start, end, step, found] :
       {std::tuple{int64_t{1}, int64_t{5}, INT64_MAX, 2.0f}, {int64_t{3}, int64_t{-6}, -INT64_MAX, 4.0f}}) {
    SCOPED_TRACE(step);
    Graph graph;
    std::vector<uint32_t> inputs{graph.input("x", BP_DTYPE_FLOAT, {5})};
    for (const int64_t number : {start, end, int64_t{0}, step})
      inputs.push_back(graph.weight("w" + std::to_string(inputs.size()), Tensor::of<int64_t>({1}, {number})));
    Exec exec = env.compile(graph.finish({graph.node("Slice", "y", inputs)}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({5}, {1, 2, 3, 4, 5}));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(found));
  }
}

// Products and sums of these numbers would exceed 64 bits, and wrap to small extents.
TEST_F(EdgesTest, ExtentsDoNotWrap) {
  const Environment env = opencl();
  const auto refusal = [&](const char* op, const std::vector<int64_t>& shape, const std::vector<int64_t>& numbers) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, shape);
    const uint32_t w = graph.weight("w", Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
    const Model model = graph.finish({graph.node(op, "y", {x, w})});
    return failure([&] {
      Exec exec = env.compile(model, only_opencl()).exec();
      exec.bind(0u, Tensor::of<float>(shape, std::vector<float>(shape.front() == 0 ? 0 : 3)));
      exec.run();
    });
  };
  EXPECT_THAT(refusal("Tile", {0, 3}, {1, INT64_MAX}).text(), HasSubstr("too large for [0,3]"));
  EXPECT_THAT(refusal("Pad", {3}, {INT64_MAX, INT64_MAX}).text(), HasSubstr("do not fit an extent of 3"));
}

// A model of one node as the bytes of an ONNX file. It declares the extents of its result: without them, a device would
// accept axes and pads only as constants.
class DeclaredModel {
 public:
  struct Value {
    const char* name;  // empty: omitted
    bp_dtype_t dtype;
    std::vector<int64_t> extents;
  };
  // `skipped` outputs before the result are omitted.
  static std::string bytes(const char* op, const std::vector<Value>& inputs, const Value& output, int skipped = 0) {
    std::string node, graph, opset = number(2, 18);
    for (const Value& each : inputs) node += part(1, each.name);
    for (int i = 0; i < skipped; ++i) node += part(2, "");
    node += part(2, output.name) + part(3, "n") + part(4, op);
    graph = part(1, node) + part(2, "g");
    for (const Value& each : inputs) graph += *each.name == '\0' ? "" : part(11, value(each));
    graph += part(12, value(output));
    return number(1, 8) + part(7, graph) + part(8, opset);
  }

 private:
  static std::string number(int field, char value) { return {static_cast<char>(field << 3), value}; }
  static std::string part(int field, const std::string& text) {
    std::string all{static_cast<char>(field << 3 | 2)};
    if (text.size() > 127) all += static_cast<char>((text.size() & 127) | 128);
    all += static_cast<char>(text.size() > 127 ? text.size() >> 7 : text.size());
    return all + text;
  }
  static std::string value(const Value& each) {
    std::string shape;
    for (const int64_t extent : each.extents) shape += part(1, number(1, static_cast<char>(extent)));
    return part(1, each.name) + part(2, part(1, number(1, static_cast<char>(each.dtype)) + part(2, shape)));
  }
};

TEST_F(EdgesTest, ASliceTakesEachAxisOnce) {
  const Environment env = opencl();
  const std::string slice = DeclaredModel::bytes("Slice",
                                                 {{"x", BP_DTYPE_FLOAT, {2, 3}},
                                                  {"starts", BP_DTYPE_INT64, {2}},
                                                  {"ends", BP_DTYPE_INT64, {2}},
                                                  {"axes", BP_DTYPE_INT64, {2}}},
                                                 {"y", BP_DTYPE_FLOAT, {1, 2}});
  Exec exec = env.compile(env.parse(slice), only_opencl()).exec();
  exec.bind("x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  exec.bind("starts", Tensor::of<int64_t>({2}, {1, 1}));
  exec.bind("ends", Tensor::of<int64_t>({2}, {2, 3}));
  exec.bind("axes", Tensor::of<int64_t>({2}, {0, 1}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(5, 6));
  exec.bind("axes", Tensor::of<int64_t>({2}, {1, -1}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), HasSubstr("axis 1 is repeated"));
}

TEST_F(EdgesTest, ReductionsSqueezeAndUnsqueezeTakeEachAxisOnce) {
  const Environment env = opencl();
  for (const auto& [op, result] : {std::pair<const char*, std::vector<int64_t>>{"ReduceSum", {1, 1}},
                                   {"Squeeze", {}},
                                   {"Unsqueeze", {1, 1, 1, 1}}}) {
    SCOPED_TRACE(op);
    Exec exec =
        env.compile(env.parse(DeclaredModel::bytes(op, {{"x", BP_DTYPE_FLOAT, {1, 1}}, {"axes", BP_DTYPE_INT64, {2}}},
                                                   {"y", BP_DTYPE_FLOAT, result})),
                    only_opencl())
            .exec();
    exec.bind("x", Tensor::of<float>({1, 1}, {3}));
    exec.bind("axes", Tensor::of<int64_t>({2}, {0, 1}));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(3));
    exec.bind("axes", Tensor::of<int64_t>({2}, {1, 1}));
    const Error error = failure([&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    EXPECT_THAT(error.text(), HasSubstr("axis 1 is repeated in [1,1]"));
  }
}

// The second pad of an axis would read elements that the first one has cut off.
TEST_F(EdgesTest, APadTakesEachAxisOnce) {
  const Environment env = opencl();
  const std::string pad = DeclaredModel::bytes("Pad",
                                               {{"x", BP_DTYPE_FLOAT, {3, 1}},
                                                {"pads", BP_DTYPE_INT64, {4}},
                                                {"", BP_DTYPE_FLOAT, {}},
                                                {"axes", BP_DTYPE_INT64, {2}}},
                                               {"y", BP_DTYPE_FLOAT, {4, 1}});
  Exec exec = env.compile(env.parse(pad), only_opencl()).exec();
  exec.bind("x", Tensor::of<float>({3, 1}, {1, 2, 3}));
  exec.bind("pads", Tensor::of<int64_t>({4}, {0, 0, 0, 1}));
  exec.bind("axes", Tensor::of<int64_t>({2}, {1, 0}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, 2, 3, 0));
  exec.bind("pads", Tensor::of<int64_t>({4}, {-2, 0, 0, 1}));
  exec.bind("axes", Tensor::of<int64_t>({2}, {0, -2}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.text(), HasSubstr("axis -2 is repeated in [0,-2]"));
}

TEST_F(EdgesTest, APadRemovesElementsBeforeItAddsOthers) {
  const Environment env = opencl();
  const auto padded = [&](const char* mode, const std::vector<int64_t>& pads) {
    Graph graph;
    NodeOptions how;
    how.attributes["mode"] = std::string(mode);
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {5});
    const uint32_t y = graph.Builder::node("Pad", {x, graph.weight("pads", Tensor::of<int64_t>({2}, pads))}, how);
    Exec exec = env.compile(graph.finish({y}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<float>({5}, {0, 1, 2, 3, 4}));
    exec.run();
    return exec.output(0u).values<float>();
  };
  EXPECT_THAT(padded("wrap", {-2, 3}), ElementsAre(2, 3, 4, 2, 3, 4));
  EXPECT_THAT(padded("wrap", {3, -2}), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(padded("reflect", {-2, 2}), ElementsAre(2, 3, 4, 3, 2));
  EXPECT_THAT(padded("edge", {3, -2}), ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT(padded("constant", {-6, 3}), ElementsAre(0, 0));
  EXPECT_THAT(failure([&] { padded("wrap", {-5, 3}); }).text(), HasSubstr("leave none of 5 elements"));
}

// The slope broadcasts to x, and not x to the slope.
TEST_F(EdgesTest, ASlopeDoesNotEnlargeX) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 2}), slope = graph.input("slope", BP_DTYPE_FLOAT, {-1, 2});
  const Environment env = opencl();
  Exec exec = env.compile(graph.finish({graph.node("PRelu", "y", {x, slope})}), only_opencl()).exec();
  exec.bind(0u, Tensor::of<float>({1, 2}, {-1, 2}));
  exec.bind(1u, Tensor::of<float>({1, 2}, {3, 4}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-3, 2));
  exec.bind(1u, Tensor::of<float>({2, 2}, {3, 4, 5, 6}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(error.text(), HasSubstr("[2,2] does not broadcast to [1,2]"));
}

// ONNX requires the first output, so a loader may refuse these models; the engine must not depend on that.
TEST_F(EdgesTest, TheFirstOutputMayBeOmitted) {
  const Environment env = opencl();
  const auto run = [&](const std::string& model) {
    std::vector<uint8_t> bytes;
    const Error error = failure([&] {
      Exec exec = env.compile(env.parse(model), only_opencl()).exec();
      exec.bind("x", Tensor::of<float>({3}, {-255, 0, 255}));
      exec.run();
      const Tensor y = exec.output(0u);
      bytes.assign(static_cast<const uint8_t*>(y.data()), static_cast<const uint8_t*>(y.data()) + y.count());
    });
    if (error.status() != BP_INVALID_MODEL) {
      EXPECT_EQ(error.status(), BP_OK) << error.text();
    }
    return bytes;
  };
  const DeclaredModel::Value x{"x", BP_DTYPE_FLOAT, {3}};
  if (const auto mask = run(DeclaredModel::bytes("Dropout", {x}, {"mask", BP_DTYPE_BOOL, {3}}, 1)); !mask.empty()) {
    EXPECT_THAT(mask, ElementsAre(1, 1, 1));
  }
  const auto zero = run(DeclaredModel::bytes("DynamicQuantizeLinear", {x}, {"zero", BP_DTYPE_UINT8, {}}, 2));
  if (!zero.empty()) {
    EXPECT_THAT(zero, ElementsAre(128));
  }
}

TEST_F(EdgesTest, SumsOfBooleansAreBooleans) {
  const Environment env = opencl();
  for (const char* op : {"ScatterElements", "ScatterND"}) {
    SCOPED_TRACE(op);
    Graph graph;
    NodeOptions how;
    how.attributes["reduction"] = std::string("add");
    const uint32_t x = graph.input("x", BP_DTYPE_BOOL, {3}), u = graph.input("u", BP_DTYPE_BOOL, {2});
    const std::vector<int64_t> shape =
        op == std::string("ScatterND") ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{2};
    const uint32_t at = graph.weight("at", Tensor::of<int64_t>(shape, {0, 1}));
    Exec exec = env.compile(graph.finish({graph.Builder::node(op, {x, at, u}, how)}), only_opencl()).exec();
    exec.bind(0u, Tensor::of<bool>({3}, {true, false, true}));
    exec.bind(1u, Tensor::of<bool>({2}, {true, true}));
    exec.run();
    const Tensor y = exec.output(0u);
    const auto* const bytes = static_cast<const uint8_t*>(y.data());
    EXPECT_THAT(std::vector<int>(bytes, bytes + 3), ElementsAre(1, 1, 1));
  }
}

TEST_F(EdgesTest, HeadsMayBeEmpty) {
  const Environment env = opencl();
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, -1, 3, 8}), c = graph.input("c", BP_DTYPE_FLOAT, {2, 3, 4});
  Exec exec = env.compile(graph.finish({graph.node("RotaryEmbedding", "y", {x, c, c})}), only_opencl()).exec();
  exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {2, 0, 3, 8}));
  exec.bind(1u, Tensor(BP_DTYPE_FLOAT, {2, 3, 4}));
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{2, 0, 3, 8}));
}

// The CPU backend multiplies integers by alpha and beta in double; OpenCL accepts an alpha of 1 and a beta of 0 or 1.
TEST_F(EdgesTest, IntegersAreNotMultipliedByFloats) {
  const Environment env = opencl();
  const auto compile = [&](float alpha, float beta) {
    Graph graph;
    NodeOptions how;
    how.attributes["alpha"] = alpha;
    how.attributes["beta"] = beta;
    std::vector<uint32_t> inputs;
    for (const char* name : {"a", "b", "c"}) inputs.push_back(graph.input(name, BP_DTYPE_INT32, {1, 1}));
    return env.compile(graph.finish({graph.Builder::node("Gemm", inputs, how)}), only_opencl());
  };
  Exec exec = compile(1, 1).exec();
  for (uint32_t i = 0; i < 3; ++i) exec.bind(i, Tensor::of<int32_t>({1, 1}, {i == 0 ? 16777217 : 1}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<int32_t>(), ElementsAre(16777218));
  for (const auto& factors : {std::pair{2.0f, 1.0f}, {1.0f, 0.5f}})
    EXPECT_THAT(failure([&] { compile(factors.first, factors.second); }).text(),
                HasSubstr("for integers, alpha must be 1"));
}

}  // namespace
}  // namespace backplane::opencl::testing
