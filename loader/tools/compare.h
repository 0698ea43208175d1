// SPDX-License-Identifier: Apache-2.0
// Compares two tensors that should be equal.
#pragma once

#include <string>

#include "command.h"
#include "onnx/value.h"

namespace backplane::tools {

// Values match if |seen - expected| <= atol + rtol * |expected|, as in numpy.allclose, except that NaN equals NaN. The
// default tolerances are those of ONNX's own tests.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;

  void declare(cli::Command command);
};

struct Difference {
  std::string shape;     // both types and shapes, if they differ; then the other members are not set
  uint64_t count = 0;    // elements
  uint64_t outside = 0;  // elements outside the tolerance
  uint64_t first = 0;    // index of the first of those elements
  uint64_t worst = 0;    // index of the element farthest outside the tolerance
  double worst_absolute = 0, worst_relative = 0;
  std::string seen, expected;  // the elements at `worst`

  bool is_none() const { return shape.empty() && outside == 0; }
};

Difference compare(const onnx::Tensor& seen, const onnx::Tensor& expected, const Tolerance& tolerance);
// {matches, elements, outside, worst: {index, seen, expected, absolute, relative}}, or {matches, types}.
Json to_json(const Difference& difference);
// "3 of 12 elements differ, the first is 2, the farthest 7: 1.5, expected 1.25", or "all 12 elements match".
std::string text(const Difference& difference);

}  // namespace backplane::tools
