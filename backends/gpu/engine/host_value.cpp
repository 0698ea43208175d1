// SPDX-License-Identifier: Apache-2.0
#include "engine/host_value.h"

#include <cstring>

#include "backplane/sdk/weights.hpp"

namespace backplane::gpu {

bool is_host_dtype(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_INT64 || dtype == BP_DTYPE_INT32 || dtype == BP_DTYPE_BOOL;
}

namespace {

template <class T>
std::vector<std::byte> bytes_as(const std::vector<int64_t>& elements) {
  const std::vector<T> narrow(elements.begin(), elements.end());
  std::vector<std::byte> bytes(narrow.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), narrow.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<std::byte> host_bytes_of(const HostValue& value, bp_dtype_t dtype) {
  if (dtype == BP_DTYPE_INT64) return bytes_as<int64_t>(value.elements);
  if (dtype == BP_DTYPE_INT32) return bytes_as<int32_t>(value.elements);
  return bytes_as<uint8_t>(value.elements);
}

HostValue host_value_of(bp_dtype_t dtype, Shape shape, const void* data, uint64_t bytes) {
  if (dtype != BP_DTYPE_BOOL) return {std::move(shape), sdk::host_ints(dtype, data, bytes)};
  return {std::move(shape), sdk::converted<uint8_t, int64_t>(data, bytes)};
}

}  // namespace backplane::gpu
