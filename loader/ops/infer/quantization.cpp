// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// The output's type is output_dtype, or else the zero point's type, or else uint8.
Status quantize(Context& c) {
  if (int64_t wanted = c.integer("output_dtype")) {
    if (c.input(2).dtype && c.input(2).dtype != wanted) {
      return c.fail("output_dtype is " + std::string(dtype_name(static_cast<bp_dtype_t>(wanted))) +
                    ", but the zero point is " + std::string(dtype_name(c.input(2).dtype)));
    }
    BP_TRY(c.set_dtype_number(0, wanted));
  } else if (!c.has(2)) {
    c.set_dtype(0, BP_DTYPE_UINT8);
  }
  return same_shape(c);
}

Status dequantize(Context& c) {
  int64_t wanted = c.integer("output_dtype");
  if (wanted) {
    BP_TRY(c.set_dtype_number(0, wanted));
  } else {
    c.set_dtype(0, c.input(1).dtype);
  }
  return same_shape(c);
}

Status quantize_dynamically(Context& c) {
  c.copy_shape(0, 0);
  BP_TRY(c.set_shape(1, {}));
  return c.set_shape(2, {});
}

}  // namespace

std::span<const RuleRow> quantization_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "DequantizeLinear", dequantize},
      {"", "DynamicQuantizeLinear", quantize_dynamically},
      {"", "QuantizeLinear", quantize},
  };
  return kRows;
}

}  // namespace backplane::ops
