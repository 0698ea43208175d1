// SPDX-License-Identifier: Apache-2.0
#include "judge/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "backplane/graph.hpp"
#include "judge/float_type.h"
#include "onnx/number.h"

namespace backplane::conform {
namespace {

template <class T>
void store(onnx::Tensor& tensor, uint64_t i, T value) {
  std::memcpy(tensor.bytes.data() + i * sizeof value, &value, sizeof value);
}

// Truncates to an integer and clamps to the range of T. NaN becomes 0.
template <class T>
T whole(double value) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  if (!(value > static_cast<double>(kLeast))) return std::isnan(value) ? T{0} : kLeast;
  return value < static_cast<double>(kMost) ? static_cast<T>(value) : kMost;
}

}  // namespace

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void require_known(bool holds, const char* what) {
  if (!holds) throw NotKnown(what);
}

void require_steps(double steps) {
  require(steps <= kMaxSteps, "the call takes more steps than the oracle supports");
}

Array::Array(bp_dtype_t type, Extents shape) : dtype(type), extents(std::move(shape)) {
  values.resize(static_cast<size_t>(count_of(extents)));
}

double& Array::at(const Index& index) {
  require(index.size() == extents.size(), "the rank of an index differs from that of its array");
  int64_t position = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    require(index[axis] >= 0 && index[axis] < extents[axis], "an index is out of range");
    position = position * extents[axis] + index[axis];
  }
  return values[static_cast<size_t>(position)];
}

double Array::broadcast_at(const Index& index) const {
  require(index.size() >= extents.size(), "an input has a higher rank than the result");
  Index own(extents.size());
  const size_t missing = index.size() - extents.size();
  for (size_t axis = 0; axis < own.size(); ++axis) own[axis] = extents[axis] == 1 ? 0 : index[axis + missing];
  return at(own);
}

bool is_float(bp_dtype_t dtype) {
  return onnx::is_inexact(dtype);
}

int64_t count_of(const Extents& extents) {
  uint64_t count = 0;
  try {
    count = onnx::element_count(extents);
  } catch (const onnx::Malformed& error) {
    throw std::invalid_argument(error.what());
  }
  for (const int64_t extent : extents) require(extent <= kMaxElements, "an extent is larger than the oracle supports");
  require(count <= static_cast<uint64_t>(kMaxElements), "an array has more elements than the oracle supports");
  return static_cast<int64_t>(count);
}

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {  // shapes are aligned at the last axis
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw std::invalid_argument("shapes do not broadcast");
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

int64_t normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) throw std::invalid_argument("axis " + std::to_string(axis) + " is out of range");
  return axis < 0 ? axis + rank : axis;
}

size_t matrix_start(const Array& stack, const Index& index) {
  int64_t matrix = 0;
  const size_t rank = stack.extents.size(), missing = index.size() - rank;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    matrix = matrix * stack.extents[axis] + (stack.extents[axis] == 1 ? 0 : index[axis + missing]);
  }
  return static_cast<size_t>(matrix * stack.extents[rank - 2] * stack.extents[rank - 1]);
}

Array to_array(const onnx::Tensor& tensor) {
  Array array(tensor.dtype, tensor.extents);
  const uint32_t bits = view::dtype_bits(tensor.dtype);
  const bool is_complex = tensor.dtype == BP_DTYPE_COMPLEX64 || tensor.dtype == BP_DTYPE_COMPLEX128;
  require(bits != 0 && !is_complex, "the oracle does not compute with elements of this type");
  require(tensor.bytes.size() >= (array.values.size() * bits + 7) / 8, "a tensor has fewer bytes than its shape needs");
  for (uint64_t i = 0; i < array.values.size(); ++i) array.values[i] = onnx::number_at(tensor, i).real();
  return array;
}

onnx::Tensor to_tensor(const Array& array) {
  onnx::Tensor tensor{array.dtype, array.extents, {}};
  tensor.bytes.resize(onnx::dense_bytes(array.dtype, array.extents));
  for (uint64_t i = 0; i < array.values.size(); ++i) {
    const double value = array.values[i];
    switch (array.dtype) {
      case BP_DTYPE_FLOAT:
        store(tensor, i, static_cast<float>(value));
        break;
      case BP_DTYPE_DOUBLE:
        store(tensor, i, value);
        break;
      case BP_DTYPE_FLOAT16:
      case BP_DTYPE_BFLOAT16:
        store(tensor, i, encode16(float_type(array.dtype), value));
        break;
      case BP_DTYPE_BOOL:
      case BP_DTYPE_UINT8:
        store(tensor, i, whole<uint8_t>(value));
        break;
      case BP_DTYPE_INT8:
        store(tensor, i, whole<int8_t>(value));
        break;
      case BP_DTYPE_UINT16:
        store(tensor, i, whole<uint16_t>(value));
        break;
      case BP_DTYPE_INT16:
        store(tensor, i, whole<int16_t>(value));
        break;
      case BP_DTYPE_INT32:
        store(tensor, i, whole<int32_t>(value));
        break;
      case BP_DTYPE_UINT32:
        store(tensor, i, whole<uint32_t>(value));
        break;
      case BP_DTYPE_INT64:
        store(tensor, i, whole<int64_t>(value));
        break;
      case BP_DTYPE_UINT64:
        store(tensor, i, whole<uint64_t>(value));
        break;
      default:
        throw std::invalid_argument("the oracle does not write elements of type " + std::to_string(array.dtype));
    }
  }
  return tensor;
}

}  // namespace backplane::conform
