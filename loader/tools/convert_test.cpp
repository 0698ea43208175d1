// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "onnx/number.h"

namespace backplane::tools {
namespace {

using onnx::Malformed;
using onnx::Tensor;

TEST(Convert, RoundsToFp16AndBf16) {
  const std::pair<double, uint16_t> rows[] = {
      {0, 0x0000},     {-0.0, 0x8000},   {1, 0x3c00},       {-2, 0xc000},        {65504, 0x7bff},
      {65519, 0x7bff}, {65520, 0x7c00},  {1e9, 0x7c00},     {6e-8, 0x0001},      {2e-8, 0x0000},
      {0.1, 0x2e66},   {6.1e-5, 0x03ff}, {2048.99, 0x6800}, {-INFINITY, 0xfc00}, {1.0009765625, 0x3c01}};
  for (const auto& [value, bits] : rows) EXPECT_EQ(float16_bits(value), bits) << value;
  EXPECT_EQ(float16_bits(NAN) & 0x7fff, 0x7e00);
  EXPECT_EQ(bfloat16_bits(1), 0x3f80);
  EXPECT_EQ(bfloat16_bits(1.00390625), 0x3f80);            // halfway: rounded to even
  EXPECT_EQ(bfloat16_bits(1 + 0x1p-8 + 0x1p-40), 0x3f81);  // above halfway; rounded to fp32, exactly halfway
  EXPECT_EQ(bfloat16_bits(-1 - 0x1p-7 - 0x1p-8 + 0x1p-40), 0xbf81);
  EXPECT_EQ(bfloat16_bits(0x1.ffp0), 0x4000);         // rounded up to the next power of two
  EXPECT_EQ(bfloat16_bits(0x1.fep127), 0x7f7f);       // the largest finite number
  EXPECT_EQ(bfloat16_bits(0x1.fefffffp127), 0x7f7f);  // below halfway to 2^128; rounded to fp32, exactly halfway
  EXPECT_EQ(bfloat16_bits(0x1.ffp127), 0x7f80);
  EXPECT_EQ(bfloat16_bits(-1e300), 0xff80);
  EXPECT_EQ(bfloat16_bits(0x1p-133), 0x0001);  // the least positive number
  EXPECT_EQ(bfloat16_bits(0x1.8p-133 + 0x1p-170), 0x0002);
  EXPECT_EQ(bfloat16_bits(0x1p-134), 0x0000);
  EXPECT_EQ(bfloat16_bits(-0.0), 0x8000);
  EXPECT_EQ(bfloat16_bits(INFINITY), 0x7f80);
  EXPECT_NE(bfloat16_bits(NAN) & 0x7f, 0);
}

TEST(Convert, ReadsLiterals) {
  const Tensor matrix = parse_literal("2x3xf32=1,2.5,-3,4e2,nan,inf");
  EXPECT_EQ(matrix.extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(onnx::number_at(matrix, 3).real(), 400);
  EXPECT_TRUE(std::isnan(onnx::number_at(matrix, 4).real()));
  const Tensor filled = parse_literal("4xu8=7");
  EXPECT_EQ(onnx::integer_at(filled, 3), 7);
  EXPECT_EQ(parse_literal("i64=9223372036854775807").extents.size(), 0u);
  EXPECT_EQ(onnx::integer_at(parse_literal("i64=9223372036854775807"), 0), INT64_MAX);
  EXPECT_EQ(static_cast<uint64_t>(onnx::integer_at(parse_literal("u64=18446744073709551615"), 0)), UINT64_MAX);
  EXPECT_EQ(onnx::integer_at(parse_literal("2xbool=true,0"), 0), 1);
  EXPECT_EQ(parse_literal("2xstr=ab,c").text(1), "c");
  // Slightly more than halfway between two values, but the nearest double is halfway.
  EXPECT_EQ(onnx::number_at(parse_literal("bf16=1.00390625000000000000001"), 0).real(), 1.0078125);
  EXPECT_EQ(onnx::number_at(parse_literal("bf16=-1.00390625000000000000001"), 0).real(), -1.0078125);
  EXPECT_EQ(onnx::number_at(parse_literal("bf16=1.00390625"), 0).real(), 1);
  EXPECT_EQ(onnx::number_at(parse_literal("bf16=4629700416936869889"), 0).real(), 0x1.02p62);
  EXPECT_EQ(onnx::number_at(parse_literal("f16=1.00048828125000000000001"), 0).real(), 1.0009765625);
  EXPECT_EQ(onnx::number_at(parse_literal("f32=1.00000005960464477539062501"), 0).real(), 0x1.000002p0);
  EXPECT_EQ(onnx::number_at(parse_literal("f32=0.1"), 0).real(), double{0.1f});
  EXPECT_EQ(onnx::number_at(parse_literal("f32=-1e39"), 0).real(), -INFINITY);
  EXPECT_EQ(onnx::number_at(parse_literal("f16=-1e400"), 0).real(), -INFINITY);
  EXPECT_EQ(onnx::number_at(parse_literal("f64=1e400"), 0).real(), INFINITY);
  EXPECT_EQ(onnx::number_at(parse_literal("bf16=1e-400"), 0).real(), 0);
  EXPECT_EQ(parse_literal("0x3xf16=").count(), 0u);
  EXPECT_EQ(parse_literal("1xfloat=1").dtype, bp_dtype_t{BP_DTYPE_FLOAT});
  for (const char* wrong :
       {"2xf32=1,2,3", "f32=", "f32=x", "u8=256", "u8=-1", "i32=1.5", "9999999999999xf32=1", "f31=1", "2x=1",
        "bool=2.5", "f32=0x1", "f32= 1", "f32=1e", "u64=18446744073709551616", "u64=-1", "i64=9223372036854775808"})
    EXPECT_THROW(parse_literal(wrong), Malformed) << wrong;
  EXPECT_TRUE(is_literal("2x3xf32=1"));
  EXPECT_FALSE(is_literal("a=b.npy"));
  EXPECT_FALSE(is_literal("x.npy"));
}

TEST(Convert, CastsWhatFits) {
  const Tensor fp16_values = convert(parse_literal("3xf64=1,2.5,-3"), BP_DTYPE_FLOAT16);
  EXPECT_EQ(onnx::number_at(fp16_values, 1).real(), 2.5);
  EXPECT_EQ(onnx::integer_at(convert(parse_literal("2xf32=3,-4"), BP_DTYPE_INT8), 1), -4);
  EXPECT_EQ(onnx::integer_at(convert(parse_literal("i64=9007199254740993"), BP_DTYPE_UINT64), 0), 9007199254740993);
  const Tensor large = {BP_DTYPE_UINT64, {2}, parse_literal("2xi64=9007199254740993,-1").bytes};
  EXPECT_EQ(
      onnx::integer_at(convert({BP_DTYPE_UINT64, {}, parse_literal("i64=9007199254740993").bytes}, BP_DTYPE_INT64), 0),
      9007199254740993);
  EXPECT_EQ(onnx::number_at(convert(large, BP_DTYPE_DOUBLE), 1).real(), 0x1p64);
  EXPECT_THROW(convert(large, BP_DTYPE_INT64), Malformed);
  EXPECT_THROW(convert(parse_literal("2xf32=1,1.5"), BP_DTYPE_INT32), Malformed);
  EXPECT_THROW(convert(parse_literal("i32=-1"), BP_DTYPE_UINT8), Malformed);
  EXPECT_THROW(convert(parse_literal("f64=1e300"), BP_DTYPE_INT64), Malformed);
  EXPECT_THROW(convert(parse_literal("str=1"), BP_DTYPE_FLOAT), Malformed);
  EXPECT_THROW(convert(parse_literal("f32=1"), BP_DTYPE_INT4), Malformed);
}

}  // namespace
}  // namespace backplane::tools
