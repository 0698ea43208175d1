// SPDX-License-Identifier: Apache-2.0
// Judges an output: whether each element is within its bound, and whether all errors together are plausible.
#pragma once

#include <string>

#include "judge/histogram.h"
#include "onnx/value.h"

namespace backplane::conform {

struct Reference;

struct Judgement {
  enum Answer { kRight, kWrong, kMistrusted } answer = kRight;
  std::string reason;  // one line; empty if right
  double worst = 0;    // the largest error as a fraction of its bound
  bool close = true;   // within ONNX's bounds for whole models: 1e-3 relative, 1e-7 absolute
  Histogram errors = {};
};

struct JudgeOptions {
  bool flushes = false;            // the device declares that it flushes subnormals
  bool drawn_around_zero = false;  // a dot product's inputs are around zero, without a bias: errors must be unbiased
};

Judgement judge(const Reference& reference, const onnx::Tensor& seen, const JudgeOptions& options);

}  // namespace backplane::conform
