// SPDX-License-Identifier: Apache-2.0
// Rules of single operators, for impossible counts and for unknown extents and elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/infer/testing.h"

namespace backplane::ops {
namespace {

using model::Attribute;
using model::ValueId;
using testing::HasSubstr;

// Counts in files may be any number. They neither overflow nor index beyond a shape.
TEST(Operators, ImpossibleCountsAreRefused) {
  const std::string most = std::to_string(INT64_MAX);
  const auto fails = [](Builder& b) { return std::string(b.run().text()); };
  Builder open;
  open.node("Unsqueeze", {open.input({"2"}), open.input({most}, BP_DTYPE_INT64)});
  EXPECT_THAT(fails(open), HasSubstr("the maximum is 32"));
  Builder many;  // duplicates among axes beyond 63 are not found
  many.node("Unsqueeze", {many.input({}), many.ints(std::vector<int64_t>(100, 99))});
  EXPECT_THAT(fails(many), HasSubstr("the maximum is 32"));
  Builder image;
  image.node("Col2Im", {image.input({"1", "4", "9"}), image.input({most}, BP_DTYPE_INT64), image.ints({2, 2})});
  EXPECT_THAT(fails(image), HasSubstr("the maximum is 32"));

  Builder b;
  const ValueId pooled =
      b.node("MaxPool", {b.input({"1", "1", most})},
             {Attribute::of("kernel_shape", std::vector<int64_t>{1}), Attribute::of("strides", std::vector<int64_t>{2}),
              Attribute::of("pads", std::vector<int64_t>{5, -9}), Attribute::of("ceil_mode", int64_t{1})});
  const ValueId attended =
      b.nodes("GroupQueryAttention", {b.input({"1", "2", "64"})}, 1,
              {Attribute::of("num_heads", int64_t{2}), Attribute::of("kv_num_heads", INT64_MAX)}, "com.microsoft")[0];
  b.expect_ok();
  EXPECT_EQ(b.text(pooled), "float[1,1," + std::to_string((INT64_MAX - 5) / 2 + 1) + "]");
  EXPECT_EQ(b.text(attended), "float[1,2,?]");
}

TEST(Operators, ConditionsLongerThanTheAxisSelectWithinIt) {
  Builder b;
  const uint8_t bytes[] = {1, 0, 1, 1, 1};
  const ValueId condition = b.graph->add_constant("bools", BP_DTYPE_BOOL, {5}, bytes, 5, b.model.next_id++);
  const ValueId x = b.input({"2", "3"});
  const ValueId columns = b.node("Compress", {x, condition}, {Attribute::of("axis", int64_t{1})});
  const ValueId rows = b.node("Compress", {x, condition}, {Attribute::of("axis", int64_t{0})});
  const ValueId flat = b.node("Compress", {x, condition});
  b.expect_ok();
  EXPECT_EQ(b.text(columns), "float[2,2]");
  EXPECT_EQ(b.text(rows), "float[1,3]");
  EXPECT_EQ(b.text(flat), "float[4]");
}

// With ceil_mode, the last window does not count if it would begin in the padding after the input. Whether it would
// begin there depends on a symbolic extent only if there is enough padding.
TEST(Operators, WindowsOfPoolsBeginInTheInput) {
  Builder b;
  const auto pool = [&](const char* extent, int64_t kernel, int64_t stride, std::vector<int64_t> pads) {
    return b.node("MaxPool", {b.input({"1", "1", extent})},
                  {Attribute::of("kernel_shape", std::vector{kernel}), Attribute::of("strides", std::vector{stride}),
                   Attribute::of("pads", std::move(pads)), Attribute::of("ceil_mode", int64_t{1})});
  };
  const ValueId padded = pool("4", 1, 1, {0, 1}), fits = pool("4", 2, 3, {0, 1}), beyond = pool("6", 2, 3, {0, 1});
  const ValueId symbolic_padded = pool("N", 1, 1, {0, 1}), symbolic_beyond = pool("N", 2, 3, {0, 1});
  const ValueId same = pool("N", 2, 1, {0, 1}), usual = pool("N", 3, 2, {1, 1});
  b.expect_ok();
  EXPECT_EQ(b.text(padded), "float[1,1,4]");
  EXPECT_EQ(b.text(fits), "float[1,1,2]");
  EXPECT_EQ(b.text(beyond), "float[1,1,2]");
  EXPECT_EQ(b.text(symbolic_padded), "float[1,1,?]");
  EXPECT_EQ(b.text(symbolic_beyond), "float[1,1,?]");
  EXPECT_EQ(b.text(same), "float[1,1,N]");
  EXPECT_EQ(b.text(usual), "float[1,1,floor(N/2) + 1]");
}

TEST(Operators, EinsumNeedsOneTermForEachInput) {
  for (const char* equation : {"ij,k", "ij,k->i", "ij,k,l", "ij,,"}) {
    Builder b;
    b.node("Einsum", {b.input({"2", "3"})}, {Attribute::of("equation", std::string(equation))});
    EXPECT_THAT(std::string(b.run().text()), HasSubstr("terms, but the node has 1 input")) << equation;
  }
}

// Extents that do not depend on inputs whose elements are unknown are inferred.
TEST(Operators, UnknownElementsLeaveOtherExtentsKnown) {
  Builder b;
  const auto ints = [&](const char* count) { return b.input({count}, BP_DTYPE_INT64); };
  const ValueId wide = b.node("Expand", {b.input({"3", "1", "N"}), ints("4")});
  const ValueId grid = b.node("AffineGrid", {b.input({"N", "2", "3"}), ints("4")});
  const ValueId image = b.node("Col2Im", {b.input({"N", "8", "9"}), ints("2"), b.ints({2, 2})});
  const ValueId signal = b.input({"N", "10", "1"}), axis = b.input({}, BP_DTYPE_INT64);
  const ValueId all = b.node("DFT", {signal, BP_NONE, axis});
  const ValueId half = b.node("DFT", {signal, BP_NONE, axis}, {Attribute::of("onesided", int64_t{1})});
  b.expect_ok();
  EXPECT_EQ(b.text(wide), "float[?,3,?,?]");
  EXPECT_EQ(b.text(grid), "float[N,?,?,2]");
  EXPECT_EQ(b.text(image), "float[N,?,?,?]");
  EXPECT_EQ(b.text(all), "float[N,10,2]");
  EXPECT_EQ(b.text(half), "float[?,?,2]");
}

TEST(Operators, SoftmaxPrecisionIsAFloatingPointType) {
  const auto run = [](int64_t precision) {
    Builder b;
    const ValueId x = b.input({"1", "2", "3", "4"});
    b.nodes("FlexAttention", {x, x, x}, 1, {Attribute::of("softmax_precision", precision)}, "ai.onnx.preview");
    return b.run();
  };
  EXPECT_TRUE(run(BP_DTYPE_DOUBLE).ok());
  for (const int64_t wrong : {int64_t{50}, int64_t{-1}, int64_t{BP_DTYPE_INT64}, (int64_t{1} << 32) + BP_DTYPE_FLOAT})
    EXPECT_THAT(std::string(run(wrong).text()), HasSubstr("softmax_precision"));
}

}  // namespace
}  // namespace backplane::ops
