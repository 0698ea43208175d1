// SPDX-License-Identifier: Apache-2.0
// Reads constants of the graph on the host: axes, shapes, scales that a kernel takes as numbers.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "engine/shape.h"

namespace backplane::opencl {

// The bytes of a value that is a weight, at any alignment. Throws sdk::Error when they cannot be read.
const void* weight_bytes(const view::Value& value);

// Elements as they lie in memory, at any alignment: integers of int32 or int64, and numbers of any type that a C++
// compiler has. Throws sdk::Error for other types.
std::vector<int64_t> host_ints(bp_dtype_t dtype, std::span<const std::byte> bytes);
std::vector<double> host_numbers(bp_dtype_t dtype, std::span<const std::byte> bytes);

// The elements of an int32 or int64 weight; nothing for any other value.
std::optional<std::vector<int64_t>> weight_ints(const view::Value& value);

// The elements of a weight of type T; nothing for any other value.
template <class T>
std::optional<std::vector<T>> weight_elements(const view::Value& value, bp_dtype_t dtype) {
  if (!value || value.weight() == nullptr || value.dtype() != dtype) return std::nullopt;
  std::vector<T> result(value.weight()->bytes / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), weight_bytes(value), result.size() * sizeof(T));
  return result;
}

}  // namespace backplane::opencl
