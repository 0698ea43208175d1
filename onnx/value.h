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

// Thrown for a file or message that breaks its format; the text is one line that says what was found.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A dense tensor; its bytes are laid out as in bp_tensor_t (strings as offsets, then text).
struct Tensor {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;

  uint64_t count() const;
  // Only for string tensors.
  std::string_view text(uint64_t i) const;
  // For the ABI; valid as long as this tensor is not changed.
  bp_tensor_t as_abi();
  // Copies a tensor of the ABI. Throws Malformed if it is not a dense tensor in host memory, or smaller than it claims.
  static Tensor copy(const bp_tensor_t& tensor);
  static Tensor of_texts(std::vector<int64_t> extents, const std::vector<std::string>& texts);
};

// A tensor, or a sequence (elements), optional (no element or one) or map (elements with keys).
struct Value {
  uint32_t kind = BP_KIND_TENSOR;
  Tensor tensor;
  std::vector<Value> elements;
  std::vector<std::string> keys;  // string keys, or the 8 bytes of int64 keys
};

// The number of elements of a shape. Throws Malformed for negative extents, too high a rank and overflow.
uint64_t element_count(const std::vector<int64_t>& extents);
// The bytes of a dense tensor; not for strings. Throws Malformed likewise, and for types without a fixed size.
uint64_t dense_bytes(bp_dtype_t dtype, const std::vector<int64_t>& extents);
// "float[2,3]".
std::string describe(bp_dtype_t dtype, const std::vector<int64_t>& extents);
inline std::string describe(const Tensor& tensor) {
  return describe(tensor.dtype, tensor.extents);
}
// "tensor", "sequence", …
std::string_view kind_name(uint32_t kind);

}  // namespace backplane::onnx
