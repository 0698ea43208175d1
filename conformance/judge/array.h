// SPDX-License-Identifier: Apache-2.0
// Tensors as the oracle computes with them: every element a double.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "backplane/types.h"
#include "onnx/value.h"

namespace backplane::conform {

using Extents = std::vector<int64_t>;
using Index = std::vector<int64_t>;

// The oracle's limits for an array's elements and a call's steps: the cases need no more.
constexpr int64_t kMaxElements = 1 << 24;
constexpr double kMaxSteps = 0x1p28;

// Throws std::invalid_argument with `what` unless `holds`.
void require(bool holds, const char* what);
// Thrown for a call that seems valid, but that the oracle does not compute.
struct NotKnown : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// Throws NotKnown with `what` unless `holds`.
void require_known(bool holds, const char* what);
// Throws std::invalid_argument if `steps` is more than kMaxSteps.
void require_steps(double steps);

// Integers are exact up to 2^53: the cases stay below.
struct Array {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  Extents extents;
  std::vector<double> values;

  Array() = default;
  Array(bp_dtype_t type, Extents shape);  // of zeros; throws std::invalid_argument if too large

  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  int64_t count() const { return static_cast<int64_t>(values.size()); }
  double& at(const Index& index);  // throws std::invalid_argument outside `extents`
  double at(const Index& index) const { return const_cast<Array*>(this)->at(index); }
  // The element at `index` of a shape that this array broadcasts to.
  double broadcast_at(const Index& index) const;
};

Array to_array(const onnx::Tensor& tensor);
// Rounds floats to the nearest, ties to even; truncates integers and clamps them to the range of their type.
onnx::Tensor to_tensor(const Array& array);

bool is_float(bp_dtype_t dtype);

// Throws std::invalid_argument for negative extents, and for an extent or a product of all above kMaxElements.
int64_t count_of(const Extents& extents);
// Converts an element that is used as an index or an extent; clamps it to ±2^53, up to which doubles are exact, so that
// the cast is defined.
inline int64_t whole(double x) {
  constexpr int64_t kMost = int64_t{1} << 53;
  return x >= 0x1p53 ? kMost : x > -0x1p53 ? static_cast<int64_t>(x) : -kMost;
}
// Calls `visit(index)` for every index of a shape, in row-major order.
template <class F>
void for_each_index(const Extents& extents, F visit) {
  const int64_t count = count_of(extents);
  Index index(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(static_cast<const Index&>(index));
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
  }
}

// The shape that both broadcast to. Throws std::invalid_argument if there is none.
Extents broadcast(const Extents& a, const Extents& b);
// Returns the axis counted from the front. Throws std::invalid_argument if it is out of range.
int64_t normal_axis(int64_t axis, int64_t rank);
// The offset of the matrix that `index` selects in a stack of matrices. The last two entries of `index` are ignored;
// the stack's leading axes broadcast to the others.
size_t matrix_start(const Array& stack, const Index& index);

}  // namespace backplane::conform
