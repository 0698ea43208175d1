// SPDX-License-Identifier: Apache-2.0
#include "onnx/value.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "onnx/number.h"
#include "onnx/wire.h"

namespace backplane::onnx {
namespace {

Tensor of_bytes(bp_dtype_t dtype, std::vector<int64_t> extents, std::vector<uint8_t> bytes) {
  Tensor tensor{dtype, std::move(extents), std::vector<std::byte>(bytes.size())};
  std::memcpy(tensor.bytes.data(), bytes.data(), bytes.size());
  return tensor;
}

TEST(Value, SizesFollowShapeAndType) {
  EXPECT_EQ(dense_bytes(BP_DTYPE_FLOAT, {2, 3}), 24u);
  EXPECT_EQ(dense_bytes(BP_DTYPE_FLOAT, {}), 4u);
  EXPECT_EQ(dense_bytes(BP_DTYPE_FLOAT, {0, 3}), 0u);
  EXPECT_EQ(dense_bytes(BP_DTYPE_INT4, {3}), 2u);
  EXPECT_THROW(dense_bytes(BP_DTYPE_FLOAT, {-1}), Malformed);
  EXPECT_THROW(dense_bytes(BP_DTYPE_FLOAT, {INT64_MAX, INT64_MAX}), Malformed);
  EXPECT_THROW(dense_bytes(BP_DTYPE_STRING, {1}), Malformed);
}

TEST(Value, SmallFloatsDecode) {
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT16, {1}, {0x00, 0x3c}), 0).real(), 1.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT16, {1}, {0x01, 0x00}), 0).real(), std::ldexp(1.0, -24));
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT16, {1}, {0x00, 0xfc}), 0).real(), -INFINITY);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_BFLOAT16, {1}, {0x80, 0x3f}), 0).real(), 1.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E4M3FN, {1}, {0x7e}), 0).real(), 448.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E4M3FNUZ, {1}, {0x7f}), 0).real(), 240.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E5M2, {1}, {0x7b}), 0).real(), 57344.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E5M2, {1}, {0x7c}), 0).real(), INFINITY);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E5M2FNUZ, {1}, {0x7f}), 0).real(), 57344.0);
  EXPECT_TRUE(std::isnan(number_at(of_bytes(BP_DTYPE_FLOAT8E5M2FNUZ, {1}, {0x80}), 0).real()));
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT8E8M0, {1}, {0x80}), 0).real(), 2.0);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT4E2M1, {2}, {0xf1}), 0).real(), 0.5);
  EXPECT_EQ(number_at(of_bytes(BP_DTYPE_FLOAT4E2M1, {2}, {0xf1}), 1).real(), -6.0);
  EXPECT_EQ(integer_at(of_bytes(BP_DTYPE_INT4, {2}, {0x7f}), 0), -1);
  EXPECT_EQ(integer_at(of_bytes(BP_DTYPE_INT4, {2}, {0x7f}), 1), 7);
  EXPECT_EQ(integer_at(of_bytes(BP_DTYPE_UINT2, {4}, {0xe4}), 3), 3);
  EXPECT_EQ(integer_at(of_bytes(BP_DTYPE_INT2, {4}, {0xe4}), 3), -1);
}

TEST(Value, StringsSurviveTheAbiAndTheWire) {
  Tensor tensor = Tensor::of_texts({2, 2}, {"one", "", "zwei", "\xff"});
  const Tensor copy = Tensor::copy(tensor.as_abi());
  const Tensor wire = from_message(to_message(copy, "x"));
  EXPECT_EQ(wire.extents, tensor.extents);
  EXPECT_EQ(wire.text(0), "one");
  EXPECT_EQ(wire.text(1), "");
  EXPECT_EQ(wire.text(2), "zwei");
  EXPECT_EQ(wire.text(3), "\xff");
}

TEST(Value, LyingStringOffsetsAreRefused) {
  Tensor tensor = Tensor::of_texts({2}, {"ab", "cd"});
  int64_t far = 1000;
  std::memcpy(tensor.bytes.data() + 8, &far, sizeof far);
  EXPECT_THROW(Tensor::copy(tensor.as_abi()), Malformed);
}

TEST(Wire, TypedListsAndRawDataAgree) {
  TensorProto typed;
  typed.set_data_type(BP_DTYPE_INT8);
  typed.add_dims(3);
  for (const int32_t i : {-1, 2, 127}) typed.add_int32_data(i);
  TensorProto raw;
  raw.set_data_type(BP_DTYPE_INT8);
  raw.add_dims(3);
  raw.set_raw_data("\xff\x02\x7f");
  EXPECT_EQ(from_message(typed).bytes, from_message(raw).bytes);
}

TEST(Wire, BadMessagesAreRefused) {
  TensorProto message;
  message.set_data_type(BP_DTYPE_FLOAT);
  message.add_dims(int64_t{1} << 40);
  EXPECT_THROW(from_message(message), Malformed);
  message.set_raw_data("abc");
  EXPECT_THROW(from_message(message), Malformed);
  message.set_data_type(99);
  EXPECT_THROW(from_message(message), Malformed);
  EXPECT_THROW(parse_value("\xff\xff\xff", BP_KIND_TENSOR), Malformed);
  EXPECT_THROW(parse_value("", BP_KIND_SPARSE_TENSOR), Malformed);
}

TEST(Wire, ContainersNest) {
  SequenceProto inner;
  *inner.add_tensor_values() = to_message(of_bytes(BP_DTYPE_UINT8, {1}, {7}), "");
  OptionalProto outer;
  *outer.mutable_sequence_value() = inner;
  const Value value = parse_value(outer.SerializeAsString(), BP_KIND_OPTIONAL);
  ASSERT_EQ(value.elements.size(), 1u);
  EXPECT_EQ(value.elements[0].kind, BP_KIND_SEQUENCE);
  ASSERT_EQ(value.elements[0].elements.size(), 1u);
  EXPECT_EQ(integer_at(value.elements[0].elements[0].tensor, 0), 7);
}

}  // namespace
}  // namespace backplane::onnx
