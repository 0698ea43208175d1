// SPDX-License-Identifier: Apache-2.0
// Tests each rule's bound against its formula, and the judgements that follow from bounds.
#include <gtest/gtest.h>

#include <cmath>

#include "judge/judge.h"
#include "judge/oracle.h"

namespace backplane::conform {
namespace {

constexpr double kE = 0x1p-23;  // 2^-frac of fp32

double bound32(const Rule& rule, double value, double scale) {
  return bound(rule, float_type(BP_DTYPE_FLOAT), value, scale);
}
double bound16(const Rule& rule, double value, double scale) {
  return bound(rule, float_type(BP_DTYPE_FLOAT16), value, scale);
}

TEST(Bounds, AreThoseOfThePage) {
  EXPECT_EQ(bound32(Rule::bits(), 3, 9), 0);
  EXPECT_EQ(bound32(Rule::exact(), 3, 9), 0);
  EXPECT_DOUBLE_EQ(bound32(Rule::within(2.5), 5, 0), 2.5 * 4 * kE);
  EXPECT_DOUBLE_EQ(bound32(Rule::smooth(), 1, 0), 16 * kE);
  EXPECT_DOUBLE_EQ(bound32(Rule::smooth(), 0x1p-60, 8), 16 * 0x1p-83 + 4 * 8 * kE / 2);
  EXPECT_DOUBLE_EQ(bound32(Rule::smooth(100), 0x1p-60, 8), 16 * 0x1p-83 + 103 * 8 * kE / 2);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kExp), 3, 0), 3 * kE * 3);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kExp), 3, 10), 3 * kE * 23);
  EXPECT_DOUBLE_EQ(bound16(Rule::of(Rule::kExp), 3, 10), 3 * 0x1p-10 * 21);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kSigmoid), 0.5, 3), 0.5 * kE * 8);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kPower), 2, 4), 2 * kE * 33);
  EXPECT_NEAR(bound32(Rule::of(Rule::kProduct, 1000), 2, 0) / (2 * (std::pow(1 + kE / 2, 1000) - 1)), 1, 1e-9);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kDot, 100), 5, 8), 2 * 100 * 8 * kE / 2);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kSum, 100), 1, 8), 2 * 100 * 8 * kE / 2 + 16 * kE);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kResize), 1, 10), 0.06);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kResize), 1, 0), 20 * kE);
}

// Rounded to bfloat16's own 8 bits, an argument of 80 would have an error that is larger than the result.
TEST(Bounds, ArgumentsOfBrainFloatsAreScaledInFp32) {
  const FloatType& type = float_type(BP_DTYPE_BFLOAT16);
  EXPECT_DOUBLE_EQ(bound(Rule::of(Rule::kExp), type, 3, 80), 3 * (0x1p-7 + 160 * kE));
  EXPECT_DOUBLE_EQ(bound(Rule::of(Rule::kSigmoid), type, 0.5, 80), 0.5 * 2 * (0x1p-7 + 80 * kE));
  EXPECT_DOUBLE_EQ(bound(Rule::of(Rule::kPower), type, 2, 80), 2 * (3 * 0x1p-7 + 600 * kE));
}

// Dot products of fp16 must accumulate in fp32: ceil(1000 / 2^6.5) = 12 roundings.
TEST(Bounds, ShorterTypesPileUpFewerRoundings) {
  EXPECT_DOUBLE_EQ(bound16(Rule::of(Rule::kDot, 1000), 5, 8), 2 * 12 * 8 * 0x1p-11);
  EXPECT_EQ(piled_up(1000, float_type(BP_DTYPE_FLOAT), 23), 1000);
}

TEST(Bounds, SmallNumbersHaveAtLeastTheirSpacing) {
  const double tiny = 0x1p-140;
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kSigmoid), tiny, 0), tiny * kE * 2 + 0x1p-149);
  EXPECT_DOUBLE_EQ(bound32(Rule::of(Rule::kDot, 10), 0, 0), 2 * 10 * 0x1p-126);
}

onnx::Tensor tensor(bp_dtype_t dtype, const std::vector<double>& values) {
  Array array(dtype, {static_cast<int64_t>(values.size())});
  array.values = values;
  return to_tensor(array);
}
Reference expected(bp_dtype_t dtype, const std::vector<double>& values, Rule rule, std::vector<double> scale = {}) {
  Array array(dtype, {static_cast<int64_t>(values.size())});
  array.values = values;
  Reference reference(std::move(array), rule);
  reference.scale = std::move(scale);
  return reference;
}
Judgement::Answer answer(const Reference& reference, const onnx::Tensor& seen) {
  return judge(reference, seen, {}).answer;
}

TEST(Judge, LooksAtEveryElement) {
  for (const Rule rule : {Rule::within(1), Rule::exact(), Rule::bits()}) {
    const Reference right = expected(BP_DTYPE_FLOAT, {1, 2, 3}, rule);
    EXPECT_EQ(answer(right, tensor(BP_DTYPE_FLOAT, {1, 2, 3})), Judgement::kRight);
    for (size_t i = 0; i < 3; ++i) {
      for (const double error : {-0.25, 0.25}) {
        std::vector<double> wrong = {1, 2, 3};
        wrong[i] += error;
        EXPECT_EQ(answer(right, tensor(BP_DTYPE_FLOAT, wrong)), Judgement::kWrong) << i;
      }
    }
  }
}

TEST(Judge, TypeAndShapeExactly) {
  const Reference right = expected(BP_DTYPE_FLOAT, {1, 1}, Rule::within(1));
  onnx::Tensor other = tensor(BP_DTYPE_FLOAT, {1, 1});
  other.extents = {1, 2};
  EXPECT_EQ(answer(right, other), Judgement::kWrong);
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_FLOAT16, {1, 1})), Judgement::kWrong);
}

TEST(Judge, IntegersExactly) {
  const Reference right = expected(BP_DTYPE_INT64, {5, 6}, Rule::exact());
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT64, {5, 6})), Judgement::kRight);
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT64, {5, 7})), Judgement::kWrong);
}

TEST(Judge, RoundedNumbersWithinHalfAStep) {
  const Reference right = expected(BP_DTYPE_INT8, {2.4, -7.5, 3}, Rule::of(Rule::kStep), {0, 0, 1});
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT8, {2, -8, 4})), Judgement::kRight);
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT8, {3, -8, 4})), Judgement::kWrong);
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT8, {2, -9, 4})), Judgement::kWrong);
  EXPECT_EQ(answer(right, tensor(BP_DTYPE_INT8, {2, -7, 5})), Judgement::kWrong);
}

TEST(Judge, NothingIsWithinABoundThatIsNoNumber) {
  for (const Rule::Kind kind : {Rule::kSmooth, Rule::kExp, Rule::kDot, Rule::kGraph}) {
    Reference right = expected(BP_DTYPE_FLOAT, {1, 2}, Rule::of(kind), {NAN, 1});
    right.typical = {1, 1};
    EXPECT_EQ(answer(right, tensor(BP_DTYPE_FLOAT, {1.5, 2})), Judgement::kWrong) << kind;
  }
  EXPECT_EQ(answer(expected(BP_DTYPE_INT8, {2}, Rule::of(Rule::kStep), {NAN}), tensor(BP_DTYPE_INT8, {99})),
            Judgement::kWrong);
}

// Each element is within its bound, but the squared errors of the second result add up to too much.
TEST(Judge, TheSquaresOfADotProductAddUp) {
  const std::vector<double> ones(100, 1.0), scale(100, 1.0);
  const Reference dot = expected(BP_DTYPE_FLOAT, ones, Rule::of(Rule::kDot, 4), scale);
  std::vector<double> seen(100);
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = 1 + (i % 2 == 0 ? 1 : -1) * kE;  // errors of two units: 4 < 6.4
  EXPECT_EQ(answer(dot, tensor(BP_DTYPE_FLOAT, seen)), Judgement::kRight);
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = 1 + (i % 2 == 0 ? 2 : -2) * kE;  // four units: 16 > 6.4
  EXPECT_EQ(answer(dot, tensor(BP_DTYPE_FLOAT, seen)), Judgement::kWrong);
}

TEST(Judge, ADotProductMayBeBiasedToNeitherSide) {
  const std::vector<double> ones(4000, 1.0), scale(4000, 1.0);
  const Reference dot = expected(BP_DTYPE_FLOAT, ones, Rule::of(Rule::kDot, 64), scale);
  for (const double side : {-1.0, 1.0}) {
    const onnx::Tensor seen = tensor(BP_DTYPE_FLOAT, std::vector<double>(4000, 1 + side * kE));
    EXPECT_EQ(judge(dot, seen, {.drawn_around_zero = true}).answer, Judgement::kWrong) << side;
    EXPECT_EQ(judge(dot, seen, {.drawn_around_zero = false}).answer, Judgement::kRight) << side;
  }
}

TEST(Judge, TheSquaresOfAGraphAddUp) {
  Reference graph = expected(BP_DTYPE_FLOAT, {1, 1, 1, 1}, Rule::of(Rule::kGraph), {1, 1, 1, 1});
  graph.typical = {0.125, 0.125, 0.125, 0.125};
  EXPECT_EQ(answer(graph, tensor(BP_DTYPE_FLOAT, {1.1, 0.9, 1.1, 1})), Judgement::kRight);
  EXPECT_EQ(answer(graph, tensor(BP_DTYPE_FLOAT, {1.5, 1, 1, 1})), Judgement::kWrong);
  EXPECT_EQ(answer(graph, tensor(BP_DTYPE_FLOAT, {2.5, 1, 1, 1})), Judgement::kWrong);
}

TEST(Judge, ReportsNearMisses) {
  const Reference right = expected(BP_DTYPE_FLOAT, {1}, Rule::within(1));
  EXPECT_TRUE(judge(right, tensor(BP_DTYPE_FLOAT, {1.0005}), {}).close);
  EXPECT_FALSE(judge(right, tensor(BP_DTYPE_FLOAT, {1.01}), {}).close);
}

}  // namespace
}  // namespace backplane::conform
