// SPDX-License-Identifier: Apache-2.0
// Compares an output with a reference value.
#pragma once

#include <string>

#include "onnx/value.h"

namespace backplane::conform {

// The rule that ONNX uses for its own test data: |seen - expected| <= absolute + relative * |expected|. Since ONNX
// 1.23, outputs of BFLOAT16 may differ by two units in the last place: neighbors are up to 2^-7 apart, relatively, so
// that 1e-3 allows no difference at all.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
  double relative_of_bfloat16 = 0x1p-6;  // in place of `relative`
};

struct Comparison {
  enum Answer { kEqual, kDifferent, kMistrusted } answer = kEqual;
  std::string reason;  // one line; empty if equal
};

// Kinds, types, shapes, integers, bools and strings must match exactly. Floats and complex numbers of all sizes must be
// within `tolerance`; NaN matches NaN, and infinities must be equal. Entries of maps match by key, in any order. A
// float or complex tensor of at least 4 elements that are all within `tolerance` is still mistrusted if more than half
// of them are zero but less than a tenth in the reference, because memory that was never written looks like that.
Comparison compare(const onnx::Value& expected, const onnx::Value& seen, const Tolerance& tolerance);

}  // namespace backplane::conform
