// SPDX-License-Identifier: Apache-2.0
// Compares an output with a reference.
#pragma once

#include <string>

#include "onnx/value.h"

namespace backplane::conform {

// ONNX's own rule for its test data: |seen - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct Comparison {
  enum Answer { kEqual, kDifferent, kMistrusted } answer = kEqual;
  std::string reason;  // one line; empty when equal
};

// Kinds, types, shapes, integers, bools and strings exactly; floats and complex numbers of all sizes within
// `tolerance`, NaN matching NaN and infinities exact. Zeros that cover much of an output whose reference has few of
// them are mistrusted even where they are close enough: memory that was never written looks like that.
Comparison compare(const onnx::Value& expected, const onnx::Value& seen, const Tolerance& tolerance);

}  // namespace backplane::conform
