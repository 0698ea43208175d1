// SPDX-License-Identifier: Apache-2.0
// Validates tensor descriptors before they are used.
#pragma once

#include <string_view>
#include <vector>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// A validated descriptor. The program owns the memory and the name.
struct Described {
  std::string_view name;  // empty: the tensor is identified by its position
  bp_dtype_t dtype;
  onnxEnum memory_type;
  std::vector<int64_t> extents;
  onnxPointer buffer;

  uint64_t bytes() const;  // the size of a dense tensor
};

// Validates a descriptor. Throws the first status that applies: UNSUPPORTED_TAG, INVALID_SHAPE, INVALID_DATATYPE,
// INVALID_MEMORY_TYPE, INVALID_MEMORY_LOCATION. Extents whose product overflows are INVALID_SHAPE too, but only after
// INVALID_DATATYPE was checked.
Described read(const onnxTensorDescriptorV1& descriptor);
// Validates `count` descriptors. Throws INVALID_POINTER if `descriptors` is NULL and `count` is not 0.
std::vector<Described> read(const onnxTensorDescriptorV1* descriptors, uint32_t count);

// Throws UNSUPPORTED_DATATYPE if an input or output of the model is not a tensor, or has a data type that descriptors
// cannot express.
void check_expressible(const Model& model);
// Throws MISMATCHING_DATATYPE or MISMATCHING_SHAPE if a tensor does not have the type or the extents of a value.
void check_dtype(const view::Value& value, const Described& described);
void check_shape(const view::Value& value, const Described& described);

// Whether two tensors share memory. OpenCL buffers do if they are the same object: which parts of a buffer a sub-buffer
// covers is not known here.
bool overlap(const Described& a, const Described& b);

}  // namespace backplane::onnxifi
