// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "backplane/graph.hpp"

namespace backplane::conform {
namespace {

struct Row {
  const char* op;
  double low, high;  // the function is defined and finite in this range, in every type
  std::vector<bp_dtype_t> types = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16};
  Attributes attributes = {};
  uint32_t since_in_half = 0;  // Problem::since for FLOAT16
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"Acos", -0.95, 0.95},
      {"Acosh", 1.25, 9},
      {"Asin", -0.95, 0.95},
      {"Asinh", -8, 8},
      {"Atan", -8, 8},
      {"Atanh", -0.95, 0.95},
      {"Cosh", -6, 6},
      {"Sinh", -6, 6},
      {"Tan", -1.4, 1.4},
      {"Celu", -8, 8, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}, {{"alpha", 1.5f}}, 28},
      {"Swish", -8, 8, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}, {{"alpha", 1.25f}}},
      {"ThresholdedRelu", -4, 4, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16}, {{"alpha", 1.5f}}},
      {"Shrink", -4, 4, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}, {{"bias", 0.25f}, {"lambd", 1.5f}}},
  };
  return kRows;
}

onnx::Tensor drawn(Random& random, bp_dtype_t dtype, Extents extents, double low, double high) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) x = random.uniform(low, high);
  return to_tensor(array);
}
onnx::Tensor drawn_integers(Random& random, bp_dtype_t dtype, Extents extents, int64_t low, int64_t high) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) x = static_cast<double>(random.integer(low, high));
  return to_tensor(array);
}

struct Shape {
  const char* name;
  Extents extents;
};
const Shape kShapes[] = {
    {"block", {2, 3, 16}}, {"odd", {7, 13}}, {"scalar", {}}, {"empty", {3, 0}}, {"long", {1, 4099}}};

void add_bits(OpCases& cases) {
  struct Type {
    bp_dtype_t dtype;
    int64_t low, high;
  };
  const Type types[] = {
      {BP_DTYPE_UINT8, 0, 255}, {BP_DTYPE_INT32, -2147483647, 2147483647}, {BP_DTYPE_UINT16, 0, 65535}};
  for (const Type& type : types) {
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      for (const Extents& other : {Extents{5, 7}, Extents{7}, Extents{}}) {
        cases.add_to(kExtended, op, type.dtype, "rank" + std::to_string(other.size()), [=](Random& random) {
          return Problem{op,
                         {},
                         {drawn_integers(random, type.dtype, {5, 7}, type.low, type.high),
                          drawn_integers(random, type.dtype, other, type.low, type.high)}};
        });
      }
    }
    cases.add_to(kExtended, "BitwiseNot", type.dtype, "odd", [=](Random& random) {
      return Problem{"BitwiseNot", {}, {drawn_integers(random, type.dtype, {5, 7}, type.low, type.high)}};
    });
  }
  for (const bp_dtype_t dtype : {BP_DTYPE_UINT8, BP_DTYPE_UINT32}) {
    for (const char* direction : {"LEFT", "RIGHT"}) {
      cases.add_to(kExtended, "BitShift", dtype, direction, [=](Random& random) {
        return Problem{"BitShift",
                       {{"direction", std::string(direction)}},
                       {drawn_integers(random, dtype, {4, 9}, 0, 255), drawn_integers(random, dtype, {9}, 0, 7)}};
      });
    }
  }
  // Amounts below 0 for signed types and beyond the bits of every type. A left shift loses the bits that pass the end
  // of the type, and a right shift of a signed number repeats its sign. The oracle computes with doubles, so the 64-bit
  // numbers have few significant bits.
  const Type shifted[] = {
      {BP_DTYPE_UINT8, 0, 255},        {BP_DTYPE_UINT32, 0, 4294967295},          {BP_DTYPE_INT8, -128, 127},
      {BP_DTYPE_INT16, -32768, 32767}, {BP_DTYPE_INT32, -2147483648, 2147483647}, {BP_DTYPE_INT64, -65536, 65535}};
  for (const Type& type : shifted) {
    for (const char* direction : {"LEFT", "RIGHT"}) {
      cases.add_to(kExtended, "BitShift", type.dtype, std::string(direction) + "_beyond", [=](Random& random) {
        const auto bits = int64_t{view::dtype_bits(type.dtype)};
        onnx::Tensor x = drawn_integers(random, type.dtype, {6, 23}, type.low, type.high);
        return Problem{
            .op = "BitShift",
            .attributes = {{"direction", std::string(direction)}},
            .arguments = {std::move(x), drawn_integers(random, type.dtype, {6, 23}, type.low < 0 ? -2 : 0, bits + 2)},
            .since = 28};
      });
    }
  }
  cases.add_to(kExtended, "BitCast", BP_DTYPE_FLOAT, "to_int32", [](Random& random) {
    return Problem{"BitCast",
                   {{"to", int64_t{BP_DTYPE_INT32}}},
                   {random_tensor(random, BP_DTYPE_FLOAT, {3, 11}, Fill::kMagnitudes)}};
  });
}

}  // namespace

void add_functions_cases(OpCases& cases) {
  for (const Row& row : rows()) {
    for (const bp_dtype_t dtype : row.types) {
      for (const Shape& shape : kShapes) {
        cases.add_to(kExtended, row.op, dtype, shape.name, [=](Random& random) {
          return Problem{.op = row.op,
                         .attributes = row.attributes,
                         .arguments = {drawn(random, dtype, shape.extents, row.low, row.high)},
                         .since = dtype == BP_DTYPE_FLOAT16 ? row.since_in_half : 0};
        });
      }
    }
  }
  for (const bp_dtype_t dtype : real_types()) {
    for (const Shape& shape : kShapes) {
      cases.add_to(kExtended, "SwiGLU", dtype, shape.name, [=](Random& random) {
        onnx::Tensor gate = drawn(random, dtype, shape.extents, -8, 8);
        return Problem{"SwiGLU", {{"alpha", 1.25f}}, {std::move(gate), drawn(random, dtype, shape.extents, -8, 8)}};
      });
    }
  }
  for (const bool negative : {false, true}) {
    for (const bool positive : {false, true}) {
      cases.add_to(kExtended, "IsInf", BP_DTYPE_FLOAT,
                   std::string(negative ? "negative" : "") + (positive ? "positive" : "") + "_special",
                   [=](Random& random) {
                     return Problem{"IsInf",
                                    {{"detect_negative", int64_t{negative}}, {"detect_positive", int64_t{positive}}},
                                    {random_tensor(random, BP_DTYPE_FLOAT, {3, 29}, Fill::kSpecial)}};
                   });
    }
  }
  for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-1}}) {
    for (const bp_dtype_t dtype : real_types()) {
      cases.add_to(kExtended, "Hardmax", dtype, "axis" + std::to_string(axis), [=](Random& random) {
        return Problem{"Hardmax", {{"axis", axis}}, {random_tensor(random, dtype, {3, 5, 7}, Fill::kWhole)}};
      });
    }
  }
  add_bits(cases);
}

}  // namespace backplane::conform
