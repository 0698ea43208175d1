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

// Kinds, types, shapes, integers, bools and strings must match exactly; floats and complex numbers of all sizes within
// `tolerance`, NaN matching NaN and infinities exactly. An output with many zeros whose reference has few is mistrusted
// even if they are within `tolerance`: memory that was never written looks like that.
Comparison compare(const onnx::Value& expected, const onnx::Value& seen, const Tolerance& tolerance);

}  // namespace backplane::conform
