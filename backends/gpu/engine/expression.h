// SPDX-License-Identifier: Apache-2.0
// A chain of elementwise operators that is not computed yet: formulas over tensors, each read along strides of its own
// (broadcast, transposed, sliced). The first consumer that needs the result in memory has one kernel written for the
// whole chain, so that nothing between its operators touches memory.
#pragma once

#include "engine/shape.h"

namespace backplane::gpu {

// Elements of a tensor along the dimensions of an expression, outermost first. A stride of 0 repeats.
struct View {
  Tensor tensor;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  bool operator==(const View& other) const {
    return tensor.id == other.tensor.id && strides == other.strides && offset == other.offset;
  }
};
// Dense, row-major.
std::vector<int64_t> dense_strides(const Shape& shape);
// The tensor broadcast to `shape` by ONNX's rule. Throws sdk::Error when it does not.
View broadcast_view(const Tensor& tensor, const Shape& shape);

struct Expression {
  // One formula. `code` has $0, $1, … for its operands and $T for its type; operand >= 0 is an earlier step, -1 - k is
  // leaf k.
  struct Step {
    bp_dtype_t dtype;
    std::string code;
    std::vector<int> operands;
  };
  std::vector<View> leaves;
  std::vector<Step> steps;  // the last one is the result
  Shape shape;

  bp_dtype_t dtype() const { return steps.back().dtype; }
  int leaf(const View& view);           // the operand that stands for it
  int append(const Expression& other);  // the operand that stands for its result
  // The steps as statements that define t0, t1, … of x0, x1, …
  std::string statements() const;
};

// Longer formulas are computed in two kernels.
inline constexpr size_t kMaxLeaves = 8;
inline constexpr size_t kMaxSteps = 40;

}  // namespace backplane::gpu
