// SPDX-License-Identifier: Apache-2.0
// A chain of elementwise operators that is not computed yet: formulas over tensors, where each tensor is read with
// strides of its own (broadcast, transposed, sliced). When a consumer needs the result in memory, one kernel is
// generated for the whole chain, so that intermediate results are never stored.
#pragma once

#include <string_view>

#include "engine/shape.h"

namespace backplane::gpu {

// A strided view of a tensor along an expression's dimensions, outermost first. Strides and offset count elements. A
// stride of 0 repeats elements.
struct View {
  Tensor tensor;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  bool operator==(const View& other) const {
    return tensor.id == other.tensor.id && strides == other.strides && offset == other.offset;
  }
};
// The strides of a dense, row-major tensor.
std::vector<int64_t> dense_strides(const Shape& shape);
// The tensor broadcast to `shape` by ONNX's rule. Throws sdk::Error if it does not broadcast.
View broadcast_view(const Tensor& tensor, const Shape& shape);

inline constexpr std::string_view kCopyFormula = "$0";
// Formulas that a driver's library may compute as a last step of a product or convolution.
inline constexpr std::string_view kSumFormula = "$0 + $1";
inline constexpr std::string_view kReluFormula = "$0 < 0 ? 0 : $0";
inline constexpr std::string_view kTanhGeluFormula =
    "($T)0.5f * $0 * (1 + tanh(($T)0.7978845608028654 * ($0 + ($T)0.044715 * $0 * $0 * $0)))";

struct Expression {
  // One formula. In `code`, $0, $1, … stand for the operands and $T for the type. An operand >= 0 is the index of an
  // earlier step; operand -1 - k is leaf k.
  struct Step {
    bp_dtype_t dtype;
    std::string code;
    std::vector<int> operands;
  };
  std::vector<View> leaves;
  std::vector<Step> steps;  // the last one is the result
  Shape shape;

  bp_dtype_t dtype() const { return steps.back().dtype; }
  int leaf(const View& view);           // adds the leaf unless there is an equal one; returns its operand number
  int append(const Expression& other);  // adds the steps of `other`; returns the operand number of its result
  // The steps as statements that define t0, t1, … from leaves x0, x1, …
  std::string statements() const;
};

// An operand that is not computed yet is fused into a formula only if the formula then has at most kMaxLeaves leaves
// and kMaxSteps steps; otherwise the operand gets a kernel of its own and becomes a leaf. No formula has more than
// kMaxLeaves operands.
inline constexpr size_t kMaxLeaves = 8;
inline constexpr size_t kMaxSteps = 40;

}  // namespace backplane::gpu
