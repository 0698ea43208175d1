// SPDX-License-Identifier: Apache-2.0
// Reads constants of the graph on the host: axes, shapes and scales that a kernel needs as numbers.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "backplane/sdk/coverage.hpp"

namespace backplane::sdk {

// The bytes of a value that is a weight, at any alignment; perhaps NULL if there are none. They stay valid as long as
// the program that is being compiled; during coverage and review, until the call returns. Throws Error if they cannot
// be read.
inline const void* weight_data(const Value& value) {
  const bp_weight_t& weight = *value.weight();
  const void* data = weight.data;
  if (data != nullptr || weight.bytes == 0) return data;
  Detail detail;
  const bp_status_t status = value.graph()->api->weight_map(value.graph(), value.raw().weight, &data, detail.get());
  try {
    detail.check(status, "its bytes cannot be read");
  } catch (Error& error) {
    error.text = "weight '" + std::string(value.name()) + "': " + error.text;
    throw;
  }
  return data;
}

// Converts elements of type T, at any alignment, to another type.
template <class T, class To>
std::vector<To> converted(const void* data, uint64_t bytes) {
  std::vector<T> elements(bytes / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), data, elements.size() * sizeof(T));
  return {elements.begin(), elements.end()};
}
// Reads int32 or int64 elements. Throws Error for other types.
inline std::vector<int64_t> host_ints(bp_dtype_t dtype, const void* data, uint64_t bytes) {
  if (dtype == BP_DTYPE_INT64) return converted<int64_t, int64_t>(data, bytes);
  if (dtype == BP_DTYPE_INT32) return converted<int32_t, int64_t>(data, bytes);
  throw Error(BP_UNSUPPORTED, "integers of type " + std::string(view::dtype_name(dtype)) + " are not read on the host");
}
// Reads elements of a type that C++ also has, or BOOL. Throws Error for other types.
inline std::vector<double> host_numbers(bp_dtype_t dtype, const void* data, uint64_t bytes) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return converted<float, double>(data, bytes);
    case BP_DTYPE_DOUBLE:
      return converted<double, double>(data, bytes);
    case BP_DTYPE_INT8:
      return converted<int8_t, double>(data, bytes);
    case BP_DTYPE_INT16:
      return converted<int16_t, double>(data, bytes);
    case BP_DTYPE_INT32:
      return converted<int32_t, double>(data, bytes);
    case BP_DTYPE_INT64:
      return converted<int64_t, double>(data, bytes);
    case BP_DTYPE_UINT8:
    case BP_DTYPE_BOOL:
      return converted<uint8_t, double>(data, bytes);
    case BP_DTYPE_UINT16:
      return converted<uint16_t, double>(data, bytes);
    case BP_DTYPE_UINT32:
      return converted<uint32_t, double>(data, bytes);
    case BP_DTYPE_UINT64:
      return converted<uint64_t, double>(data, bytes);
  }
  throw Error(BP_UNSUPPORTED, "numbers of type " + std::string(view::dtype_name(dtype)) + " are not read on the host");
}

// The elements of a weight of type `dtype`, whose C++ type is T. nullopt for any other value.
template <class T>
std::optional<std::vector<T>> weight_elements(const Value& value, bp_dtype_t dtype) {
  if (!value || value.weight() == nullptr || value.dtype() != dtype) return std::nullopt;
  return converted<T, T>(weight_data(value), value.weight()->bytes);
}
// The elements of an int32 or int64 weight; nullopt for any other value.
inline std::optional<std::vector<int64_t>> weight_ints(const Value& value) {
  if (!value || value.weight() == nullptr) return std::nullopt;
  if (value.dtype() != BP_DTYPE_INT32 && value.dtype() != BP_DTYPE_INT64) return std::nullopt;
  return host_ints(value.dtype(), weight_data(value), value.weight()->bytes);
}

}  // namespace backplane::sdk
