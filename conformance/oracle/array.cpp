// SPDX-License-Identifier: Apache-2.0
#include "oracle/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "oracle/float_type.h"
#include "schema/number.h"

namespace backplane::conform {
namespace {

template <class T>
void store(onnx::Tensor& tensor, uint64_t i, T value) {
  std::memcpy(tensor.bytes.data() + i * sizeof value, &value, sizeof value);
}

}  // namespace

Array::Array(bp_dtype_t type, Extents shape) : dtype(type), extents(std::move(shape)) {
  values.resize(static_cast<size_t>(count_of(extents)));
}

double& Array::at(const Index& index) {
  int64_t position = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) position = position * extents[axis] + index[axis];
  return values[static_cast<size_t>(position)];
}

double Array::broadcast_at(const Index& index) const {
  Index own(extents.size());
  const size_t missing = index.size() - extents.size();
  for (size_t axis = 0; axis < own.size(); ++axis) own[axis] = extents[axis] == 1 ? 0 : index[axis + missing];
  return at(own);
}

bool is_float(bp_dtype_t dtype) {
  return onnx::is_inexact(dtype);
}

int64_t count_of(const Extents& extents) {
  return static_cast<int64_t>(onnx::element_count(extents));
}

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {  // from the back
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

Array to_array(const onnx::Tensor& tensor) {
  Array array(tensor.dtype, tensor.extents);
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
        store(tensor, i, static_cast<uint8_t>(value));
        break;
      case BP_DTYPE_INT8:
        store(tensor, i, static_cast<int8_t>(value));
        break;
      case BP_DTYPE_UINT16:
        store(tensor, i, static_cast<uint16_t>(value));
        break;
      case BP_DTYPE_INT16:
        store(tensor, i, static_cast<int16_t>(value));
        break;
      case BP_DTYPE_INT32:
        store(tensor, i, static_cast<int32_t>(value));
        break;
      case BP_DTYPE_UINT32:
        store(tensor, i, static_cast<uint32_t>(value));
        break;
      case BP_DTYPE_INT64:
        store(tensor, i, static_cast<int64_t>(value));
        break;
      case BP_DTYPE_UINT64:
        store(tensor, i, static_cast<uint64_t>(value));
        break;
      default:
        throw std::invalid_argument("the oracle does not write elements of type " + std::to_string(array.dtype));
    }
  }
  return tensor;
}

}  // namespace backplane::conform
