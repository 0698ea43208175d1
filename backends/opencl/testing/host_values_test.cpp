// SPDX-License-Identifier: Apache-2.0
// Integers that follow from extents are computed on the host, so that other nodes can use them as extents.
#include <gmock/gmock.h>

#include <functional>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using HostValues = OpenCl;
using Shape = std::vector<int64_t>;

// Adds nodes with consecutive names.
class Steps {
 public:
  uint32_t operator()(const char* op, const std::vector<uint32_t>& inputs,
                      std::map<std::string, AttributeValue> attributes = {}) {
    NodeOptions how;
    how.attributes = std::move(attributes);
    how.name = "v" + std::to_string(names_++);
    how.output_names = {how.name};
    return graph.Builder::node(op, inputs, how);
  }
  template <class T = int64_t>
  uint32_t constant(const Shape& shape, const std::vector<T>& values) {
    return graph.weight("w" + std::to_string(names_++), Tensor::of<T>(shape, values));
  }
  uint32_t ints(const std::vector<int64_t>& values) { return constant({static_cast<int64_t>(values.size())}, values); }
  uint32_t number(int64_t value) { return constant({}, std::vector<int64_t>{value}); }

  Graph graph;

 private:
  int names_ = 0;
};

struct Case {
  const char* name;
  std::function<uint32_t(Steps& add, uint32_t x, uint32_t shape)> result;  // integers that follow from the shape of x
};

// [-7, 7, INT64_MIN], computed from three extents.
uint32_t extremes(Steps& add, uint32_t shape) {
  return add("Add", {add("Mul", {shape, add.number(0)}), add.ints({-7, 7, INT64_MIN})});
}

// x has rank 3.
const Case kCases[] = {
    {"Shape", [](Steps&, uint32_t, uint32_t s) { return s; }},
    {"part of Shape",
     [](Steps& add, uint32_t x, uint32_t) {
       return add("Shape", {x}, {{"start", int64_t{-2}}, {"end", int64_t{9}}});
     }},
    {"Size", [](Steps& add, uint32_t x, uint32_t) { return add("Size", {x}); }},
    {"Identity", [](Steps& add, uint32_t, uint32_t s) { return add("Identity", {s}); }},
    {"Gather",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Gather", {s, add.constant({2, 2}, Shape{0, -1, 1, -3})});
     }},
    {"Concat",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Concat", {s, add.ints({7, -2}), s}, {{"axis", int64_t{0}}});
     }},
    {"Slice",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Slice", {s, add.ints({9}), add.ints({-9}), add.ints({0}), add.ints({-2})});
     }},
    {"Unsqueeze and Squeeze",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Squeeze", {add("Unsqueeze", {s, add.ints({0, 2})}), add.ints({2})});
     }},
    {"Reshape",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Reshape", {s, add.ints({1, -1, 1})});
     }},
    {"Expand",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Expand", {s, add.ints({2, 1})});
     }},
    {"Cast",
     [](Steps& add, uint32_t, uint32_t s) {
       const uint32_t big = add("Mul", {s, add.number(0x1000000001)});
       return add("Cast", {add("Cast", {big}, {{"to", int64_t{BP_DTYPE_INT32}}})}, {{"to", int64_t{BP_DTYPE_INT64}}});
     }},
    {"Cast to BOOL",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Cast", {add("Sub", {s, add.number(3)})}, {{"to", int64_t{BP_DTYPE_BOOL}}});
     }},
    {"Add",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Add", {s, add.constant({2, 1}, Shape{INT64_MAX, 5})});
     }},
    {"Sub",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Sub", {add.number(4), s});
     }},
    {"Mul",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Mul", {s, s});
     }},
    {"Div",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Div", {extremes(add, s), add.ints({2, -2, -1})});
     }},
    {"Mod",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Mod", {extremes(add, s), add.ints({3, -3, -1})});
     }},
    {"fmod",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Mod", {extremes(add, s), add.ints({3, -3, -1})}, {{"fmod", int64_t{1}}});
     }},
    {"Concat and Gather of matrices",
     [](Steps& add, uint32_t, uint32_t s) {
       const uint32_t row = add("Unsqueeze", {s, add.ints({0})});
       const uint32_t wide = add("Concat", {row, add.constant({1, 2}, Shape{8, 9}), row}, {{"axis", int64_t{1}}});
       const uint32_t both = add("Concat", {wide, add("Mul", {wide, add.number(10)})}, {{"axis", int64_t{0}}});
       return add("Gather", {both, add.constant({2, 1}, Shape{-1, 3})}, {{"axis", int64_t{1}}});
     }},
    {"Min",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Min", {s, add.number(3), add.ints({1, 9, 9})});
     }},
    {"Max",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Max", {s, add.number(3)});
     }},
    {"Equal and Where",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Where", {add("Equal", {s, add.ints({2, 5, 1})}), add.number(4), s});
     }},
    {"ConstantOfShape",
     [](Steps& add, uint32_t, uint32_t s) {
       return add("Mul", {s, add("ConstantOfShape", {add("Shape", {s})}, {{"value", Tensor::of<int64_t>({1}, {-3})}})});
     }},
};

struct Outcome {
  Shape extents;
  std::vector<uint8_t> bytes;
  Shape used_as_extents;
};

Outcome of_shape(const Case& one, const Environment& env, const SessionOptions& how, const Shape& extents) {
  Steps add;
  const uint32_t x = add.graph.input("x", BP_DTYPE_FLOAT, {-1, -1, -1});
  uint32_t result = one.result(add, x, add("Shape", {x}));
  const uint32_t flat = add("Reshape", {add("Cast", {result}, {{"to", int64_t{BP_DTYPE_INT64}}}), add.ints({-1})});
  // The extents of `shaped` are the results, limited to 1 to 5.
  const uint32_t shaped =
      add("Expand", {add.constant<float>({1}, {2}), add("Max", {add("Min", {flat, add.number(5)}), add.number(1)})});
  for (const uint32_t output : {result, shaped}) add.graph.output(output);
  Exec exec = env.compile(add.graph.Builder::finish(), how).exec();
  exec.bind(0u, Tensor(BP_DTYPE_FLOAT, extents));
  exec.run();
  const Tensor numbers = exec.output(0), last = exec.output(1);
  const auto* bytes = static_cast<const uint8_t*>(numbers.data());
  return {numbers.extents(), {bytes, bytes + numbers.abi().buffer.bytes}, last.extents()};
}

TEST_F(HostValues, AreThoseOfTheCpu) {
  const Environment env = opencl(), cpu = environment({kCpuPlugin});
  for (const Case& one : kCases) {
    for (const Shape& extents : {Shape{2, 3, 4}, Shape{5, 1, 1}}) {
      SCOPED_TRACE(one.name);
      const Outcome expected = of_shape(one, cpu, {}, extents), seen = of_shape(one, env, only_opencl(), extents);
      EXPECT_EQ(seen.extents, expected.extents);
      EXPECT_EQ(seen.bytes, expected.bytes);
      EXPECT_EQ(seen.used_as_extents, expected.used_as_extents);
    }
  }
}

// y = x [n, 6] as [n * 6 / 4, 4], with the number of rows computed: runs of one exec use different extents.
TEST_F(HostValues, FollowEachRunsExtents) {
  Steps add;
  const uint32_t x = add.graph.input("x", BP_DTYPE_FLOAT, {-1, 6}, {"n", ""});
  const uint32_t rows =
      add("Div", {add("Mul", {add("Gather", {add("Shape", {x}), add.ints({0})}), add.number(6)}), add.number(4)});
  const uint32_t shape = add("Concat", {rows, add.ints({4})}, {{"axis", int64_t{0}}});
  add.graph.output(add("Softmax", {add("Reshape", {x, shape})}));
  Exec exec = opencl().compile(add.graph.Builder::finish(), only_opencl()).exec();
  for (const int64_t n : {2, 10, 4, 2}) {
    exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {n, 6}));
    exec.run();
    EXPECT_EQ(exec.output(0).extents(), (Shape{n * 6 / 4, 4}));
  }
  exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {3, 6}));
  const Error error = failure([&] { exec.run(); });
  EXPECT_THAT(error.text(), ::testing::HasSubstr("Reshape"));
}

// A quotient of extents is computed on the device, as the divisor may be 0. The quotient thus cannot become an extent.
TEST_F(HostValues, QuotientsByExtentsAreRefused) {
  for (const char* op : {"Div", "Mod"}) {
    Steps add;
    const uint32_t x = add.graph.input("x", BP_DTYPE_FLOAT, {-1, -1});
    const uint32_t n = add(op, {add.ints({6}), add("Shape", {x}, {{"end", int64_t{1}}})});
    add.graph.output(add("Expand", {add.constant<float>({1}, {2}), n}));
    const Model model = add.graph.Builder::finish();
    const Error error = failure([&] { opencl().compile(model, only_opencl()); });
    EXPECT_THAT(error.text(), ::testing::HasSubstr("input 1 is not a constant, and does not follow from extents"));
    Exec exec = opencl().compile(model).exec();
    exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {4, 1}));
    exec.run();
    EXPECT_EQ(exec.output(0).extents(), Shape{op == std::string("Div") ? 1 : 2});
  }
}

// A node whose extents are computed by a node of another device is given back. If a pin requires that it runs on
// OpenCL, the pin is refused.
TEST_F(HostValues, GivenBackWithoutTheirSource) {
  Steps add;
  const uint32_t x = add.graph.input("x", BP_DTYPE_FLOAT, {-1, 4});
  const uint32_t shape = add("Shape", {x});
  add.graph.output(add("Expand", {add.constant<float>({1}, {2}), shape}));
  const Model model = add.graph.Builder::finish();
  SessionOptions how;
  how.options["loader.costs"] = "reported";
  how.pins = {{"v0", "cpu"}};  // Shape
  Exec exec = opencl().compile(model, how).exec();
  exec.bind(0u, Tensor(BP_DTYPE_FLOAT, {3, 4}));
  exec.run();
  EXPECT_EQ(exec.output(0).extents(), (Shape{3, 4}));
  how.pins["v2"] = "opencl";  // Expand
  const Error error = failure([&] { opencl().compile(model, how); });
  EXPECT_THAT(error.text(), ::testing::HasSubstr("pin 'v2'"));
  EXPECT_THAT(error.text(), ::testing::HasSubstr("depend on input 1, which is not a constant"));
}

}  // namespace
}  // namespace backplane::opencl::testing
