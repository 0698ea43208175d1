// SPDX-License-Identifier: Apache-2.0
// Tensors in the form that the oracle computes with: every element is a double.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "backplane/types.h"
#include "onnx/value.h"

namespace backplane::conform {

using Extents = std::vector<int64_t>;
using Index = std::vector<int64_t>;

// The oracle's limits for the elements of an array and the steps of a call. The cases need no more.
constexpr int64_t kMaxElements = 1 << 24;
constexpr double kMaxSteps = 0x1p28;

// Throws std::invalid_argument with the message `what` unless `holds`.
void require(bool holds, const char* what);
// Thrown for a call that may be valid, but that the oracle cannot compute.
struct NotKnown : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// Throws NotKnown with the message `what` unless `holds`.
void require_known(bool holds, const char* what);
// Throws std::invalid_argument if `steps` exceeds kMaxSteps.
void require_steps(double steps);

// A tensor whose elements are doubles. Integers are exact up to 2^53; the cases use no larger ones.
struct Array {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  Extents extents;
  std::vector<double> values;

  Array() = default;
  Array(bp_dtype_t type, Extents shape);  // all zeros; throws std::invalid_argument if too large

  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  int64_t count() const { return static_cast<int64_t>(values.size()); }
  double& at(const Index& index);  // throws std::invalid_argument outside `extents`
  double at(const Index& index) const { return const_cast<Array*>(this)->at(index); }
  // The element that broadcasting places at `index` of a larger shape.
  double broadcast_at(const Index& index) const;
};

// Throws std::invalid_argument if the elements are strings or complex, or if the tensor is too large or has too few
// bytes.
Array to_array(const onnx::Tensor& tensor);
// Rounds floats to nearest, ties to even. Truncates integers and clamps them to the range of their type; NaN becomes 0.
// Throws std::invalid_argument for other types: strings, complex numbers, 8-bit floats and types of less than 8 bits.
onnx::Tensor to_tensor(const Array& array);

bool is_float(bp_dtype_t dtype);

// The number of elements. Throws std::invalid_argument if an extent is negative, or if an extent or the number of
// elements exceeds kMaxElements.
int64_t count_of(const Extents& extents);
// Converts an element that is used as an index or an extent. Clamps it to ±2^53, the range in which doubles are exact
// integers, so that the cast is defined.
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

// The shape to which both shapes broadcast. Throws std::invalid_argument if there is none.
Extents broadcast(const Extents& a, const Extents& b);
// Returns the axis counted from the front. Throws std::invalid_argument if it is out of range.
int64_t normal_axis(int64_t axis, int64_t rank);
// The offset, in elements, of the matrix that `index` selects in a stack of matrices. The last two entries of `index`
// are ignored. The leading axes of the stack broadcast to the other entries.
size_t matrix_start(const Array& stack, const Index& index);

}  // namespace backplane::conform
