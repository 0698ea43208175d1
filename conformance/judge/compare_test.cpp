// SPDX-License-Identifier: Apache-2.0
#include "judge/compare.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

namespace backplane::conform {
namespace {

using onnx::Tensor;
using onnx::Value;
using testing::HasSubstr;

template <class T>
Value tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::vector<T> elements) {
  Value value;
  value.tensor = {dtype, std::move(extents), std::vector<std::byte>(elements.size() * sizeof(T))};
  if (!elements.empty()) std::memcpy(value.tensor.bytes.data(), elements.data(), value.tensor.bytes.size());
  return value;
}

Value floats(std::vector<float> elements) {
  const auto count = static_cast<int64_t>(elements.size());
  return tensor<float>(BP_DTYPE_FLOAT, {count}, std::move(elements));
}

Comparison::Answer answer(const Value& expected, const Value& seen) {
  return compare(expected, seen, {}).answer;
}

constexpr auto kEqual = Comparison::kEqual;
constexpr auto kDifferent = Comparison::kDifferent;
constexpr auto kMistrusted = Comparison::kMistrusted;

TEST(Compare, FloatsWithinTheTolerance) {
  EXPECT_EQ(answer(floats({1.0f, -100.0f}), floats({1.0009f, -100.09f})), kEqual);
  EXPECT_EQ(answer(floats({1.0f}), floats({1.002f})), kDifferent);
  EXPECT_EQ(answer(floats({0.0f}), floats({9e-8f})), kEqual);
  EXPECT_EQ(answer(floats({0.0f}), floats({2e-7f})), kDifferent);
}

TEST(Compare, Bfloat16WithinTwoUnitsInTheLastPlace) {
  const auto at = [](uint16_t bits) { return tensor<uint16_t>(BP_DTYPE_BFLOAT16, {1}, {bits}); };
  constexpr uint16_t kOne = 0x3f80;
  EXPECT_EQ(answer(at(kOne), at(kOne + 2)), kEqual);
  EXPECT_EQ(answer(at(kOne), at(kOne + 3)), kDifferent);
  EXPECT_EQ(compare(at(kOne), at(kOne + 1), {.relative_of_bfloat16 = 1e-3}).answer, kDifferent);
}

TEST(Compare, OneWrongElementIsFoundAndNamed) {
  std::vector<float> right(12, 1.0f), wrong = right;
  wrong[7] = 2.0f;
  const Comparison result =
      compare(tensor<float>(BP_DTYPE_FLOAT, {3, 4}, right), tensor<float>(BP_DTYPE_FLOAT, {3, 4}, wrong), {});
  EXPECT_EQ(result.answer, kDifferent);
  EXPECT_THAT(result.reason, HasSubstr("1 of 12 elements differ, first at [1,3]: 2, expected 1"));
}

TEST(Compare, NanAndInfinity) {
  EXPECT_EQ(answer(floats({NAN, INFINITY, -INFINITY}), floats({NAN, INFINITY, -INFINITY})), kEqual);
  EXPECT_EQ(answer(floats({NAN}), floats({1.0f})), kDifferent);
  EXPECT_EQ(answer(floats({1.0f}), floats({NAN})), kDifferent);
  EXPECT_EQ(answer(floats({INFINITY}), floats({3e38f})), kDifferent);
  EXPECT_EQ(answer(floats({3e38f}), floats({INFINITY})), kDifferent);
  EXPECT_EQ(answer(floats({INFINITY}), floats({-INFINITY})), kDifferent);
}

TEST(Compare, TypeAndShapeExactly) {
  const std::vector<float> four(4, 1.0f);
  EXPECT_EQ(answer(tensor(BP_DTYPE_FLOAT, {2, 2}, four), tensor(BP_DTYPE_FLOAT, {4}, four)), kDifferent);
  EXPECT_EQ(answer(tensor(BP_DTYPE_FLOAT, {4}, four), tensor(BP_DTYPE_INT32, {4}, four)), kDifferent);
  EXPECT_EQ(answer(tensor<int32_t>(BP_DTYPE_INT32, {1}, {1}), tensor<int64_t>(BP_DTYPE_INT64, {1}, {1})), kDifferent);
  EXPECT_EQ(answer(tensor<float>(BP_DTYPE_FLOAT, {0, 2}, {}), tensor<float>(BP_DTYPE_FLOAT, {2, 0}, {})), kDifferent);
}

TEST(Compare, IntegersAndBoolsExactly) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(answer(tensor<int64_t>(BP_DTYPE_INT64, {1}, {big}), tensor<int64_t>(BP_DTYPE_INT64, {1}, {big - 1})),
            kDifferent);
  EXPECT_EQ(answer(tensor<int32_t>(BP_DTYPE_INT32, {1}, {10000}), tensor<int32_t>(BP_DTYPE_INT32, {1}, {10001})),
            kDifferent);
  EXPECT_EQ(answer(tensor<uint8_t>(BP_DTYPE_BOOL, {1}, {1}), tensor<uint8_t>(BP_DTYPE_BOOL, {1}, {2})), kDifferent);
  // With three 4-bit elements, the last four bits belong to no element.
  EXPECT_EQ(
      answer(tensor<uint8_t>(BP_DTYPE_INT4, {3}, {0x21, 0x03}), tensor<uint8_t>(BP_DTYPE_INT4, {3}, {0x21, 0xf3})),
      kEqual);
  EXPECT_EQ(
      answer(tensor<uint8_t>(BP_DTYPE_INT4, {3}, {0x21, 0x03}), tensor<uint8_t>(BP_DTYPE_INT4, {3}, {0x21, 0x04})),
      kDifferent);
}

TEST(Compare, Float16AndComplex) {
  EXPECT_EQ(
      answer(tensor<uint16_t>(BP_DTYPE_FLOAT16, {1}, {0x3c00}), tensor<uint16_t>(BP_DTYPE_FLOAT16, {1}, {0x3c01})),
      kEqual);
  EXPECT_EQ(
      answer(tensor<uint16_t>(BP_DTYPE_FLOAT16, {1}, {0x3c00}), tensor<uint16_t>(BP_DTYPE_FLOAT16, {1}, {0x3c02})),
      kDifferent);
  EXPECT_EQ(answer(tensor<float>(BP_DTYPE_COMPLEX64, {1}, {1, 2}), tensor<float>(BP_DTYPE_COMPLEX64, {1}, {1, -2})),
            kDifferent);
}

TEST(Compare, Strings) {
  Value a, b, c;
  a.tensor = Tensor::of_texts({2}, {"ab", "c"});
  b.tensor = Tensor::of_texts({2}, {"ab", "c"});
  c.tensor = Tensor::of_texts({2}, {"a", "bc"});
  EXPECT_EQ(answer(a, b), kEqual);
  EXPECT_EQ(answer(a, c), kDifferent);
}

TEST(Compare, Containers) {
  const Value one{BP_KIND_SEQUENCE, {}, {floats({1})}, {}};
  const Value two{BP_KIND_SEQUENCE, {}, {floats({1}), floats({2})}, {}};
  const Value other{BP_KIND_SEQUENCE, {}, {floats({1}), floats({3})}, {}};
  const Value optional{BP_KIND_OPTIONAL, {}, {floats({1})}, {}};
  EXPECT_EQ(answer(two, two), kEqual);
  EXPECT_EQ(answer(one, two), kDifferent);
  EXPECT_EQ(answer(two, other), kDifferent);
  EXPECT_EQ(answer(one, optional), kDifferent);
  EXPECT_EQ(answer({BP_KIND_MAP, {}, {floats({1})}, {"a"}}, {BP_KIND_MAP, {}, {floats({1})}, {"b"}}), kDifferent);
}

TEST(Compare, ZerosWhereTheReferenceHasFewAreMistrusted) {
  EXPECT_EQ(answer(floats({1e-8f, 2e-8f, -1e-8f, 1e-8f}), floats({0, 0, 0, 0})), kMistrusted);
  EXPECT_EQ(answer(floats({0, 0, 0, 1e-8f}), floats({0, 0, 0, 0})), kEqual);
}

TEST(Compare, MapsHaveNoOrder) {
  Value one, two;
  one.kind = two.kind = BP_KIND_MAP;
  one.keys = {"a", "b"};
  two.keys = {"b", "a"};
  one.elements = {Value(), Value()};
  one.elements[0].tensor = Tensor::of_texts({1}, {"first"});
  one.elements[1].tensor = Tensor::of_texts({1}, {"second"});
  two.elements = {one.elements[1], one.elements[0]};
  EXPECT_EQ(compare(one, two, {}).answer, Comparison::kEqual);
  two.keys = {"a", "b"};
  EXPECT_EQ(compare(one, two, {}).answer, Comparison::kDifferent);
  two.keys = {"a", "a"};
  EXPECT_EQ(compare(one, two, {}).answer, Comparison::kDifferent);
  one.keys = {"a", "a"};  // an invalid map with two equal keys
  one.elements[1] = one.elements[0];
  EXPECT_EQ(compare(one, one, {}).answer, Comparison::kDifferent);
}

}  // namespace
}  // namespace backplane::conform
