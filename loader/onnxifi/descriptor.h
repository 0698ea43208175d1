// SPDX-License-Identifier: Apache-2.0
// Tensor descriptors, validated before use.
#pragma once

#include <string_view>
#include <vector>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// A descriptor's tensor. The memory is owned by the program.
struct Described {
  std::string_view name;  // empty: identified by position
  bp_dtype_t dtype;
  onnxEnum memory_type;
  std::vector<int64_t> extents;
  onnxPointer buffer;

  uint64_t bytes() const;  // dense
};

// Throws the first of these that applies: UNSUPPORTED_TAG, INVALID_DATATYPE, INVALID_MEMORY_TYPE, INVALID_SHAPE,
// INVALID_MEMORY_LOCATION.
Described read(const onnxTensorDescriptorV1& descriptor);
// Reads `count` descriptors. Throws INVALID_POINTER if `descriptors` is NULL and `count` is not 0.
std::vector<Described> read(const onnxTensorDescriptorV1* descriptors, uint32_t count);

}  // namespace backplane::onnxifi
