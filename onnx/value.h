// SPDX-License-Identifier: Apache-2.0
// Values in host memory that own their contents.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/memory.h"

namespace backplane::onnx {

// Thrown for a file or message that violates its format. The text is one line that describes the fault.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A dense tensor. Its bytes are laid out as in bp_tensor_t; strings are offsets followed by text.
struct Tensor {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;

  uint64_t count() const;
  // Only for string tensors.
  std::string_view text(uint64_t i) const;
  // A view for the ABI, valid until this tensor changes.
  bp_tensor_t as_abi();
  // Copies a tensor of the ABI. Throws Malformed if it is not dense, is not in host memory, has fewer bytes than its
  // shape needs, or has invalid string offsets.
  static Tensor copy(const bp_tensor_t& tensor);
  static Tensor of_texts(std::vector<int64_t> extents, const std::vector<std::string>& texts);
};

// A tensor, or a container: a sequence (elements), an optional (no element or one), or a map (elements and keys).
struct Value {
  uint32_t kind = BP_KIND_TENSOR;
  Tensor tensor;
  std::vector<Value> elements;
  std::vector<std::string> keys;  // of a map, one for each element: a string, or the 8 bytes of an int64
};

// The number of elements of a shape. Throws Malformed for negative extents, more than BP_MAX_RANK dimensions, and more
// than 2^59 elements.
uint64_t element_count(const std::vector<int64_t>& extents);
// The size of a dense tensor in bytes. Throws Malformed like element_count, and for strings and other types without a
// fixed size.
uint64_t dense_bytes(bp_dtype_t dtype, const std::vector<int64_t>& extents);
// Text such as "float[2,3]".
std::string describe(bp_dtype_t dtype, const std::vector<int64_t>& extents);
inline std::string describe(const Tensor& tensor) {
  return describe(tensor.dtype, tensor.extents);
}
// Text such as "tensor" or "sequence".
std::string_view kind_name(uint32_t kind);

}  // namespace backplane::onnx
