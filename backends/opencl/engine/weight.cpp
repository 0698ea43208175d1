// SPDX-License-Identifier: Apache-2.0
#include "engine/weight.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::opencl {

const void* weight_bytes(const view::Value& value) {
  const void* data = value.weight()->data;
  if (data != nullptr || value.weight()->bytes == 0) return data;
  char words[300];
  bp_error_t error{sizeof error, BP_OK, BP_NO_NODE, 0, 0, 0, words, sizeof words, 0};
  const bp_graph_t* graph = value.graph();
  const bp_status_t status = graph->api->weight_map(graph, value.raw().weight, &data, &error);
  if (status != BP_OK) {
    throw sdk::Error(status, "weight '" + std::string(value.name()) +
                                 "': " + std::string(words, std::min<uint64_t>(error.text_size, sizeof words)));
  }
  return data;
}

namespace {

template <class T, class To>
std::vector<To> converted(std::span<const std::byte> bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return {elements.begin(), elements.end()};
}

sdk::Error unreadable(bp_dtype_t dtype) {
  return {BP_UNSUPPORTED, "numbers of type " + std::string(view::dtype_name(dtype)) + " are not read on the host"};
}

}  // namespace

std::vector<int64_t> host_ints(bp_dtype_t dtype, std::span<const std::byte> bytes) {
  if (dtype == BP_DTYPE_INT64) return converted<int64_t, int64_t>(bytes);
  if (dtype == BP_DTYPE_INT32) return converted<int32_t, int64_t>(bytes);
  throw unreadable(dtype);
}

std::vector<double> host_numbers(bp_dtype_t dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return converted<float, double>(bytes);
    case BP_DTYPE_DOUBLE:
      return converted<double, double>(bytes);
    case BP_DTYPE_INT8:
      return converted<int8_t, double>(bytes);
    case BP_DTYPE_INT16:
      return converted<int16_t, double>(bytes);
    case BP_DTYPE_INT32:
      return converted<int32_t, double>(bytes);
    case BP_DTYPE_INT64:
      return converted<int64_t, double>(bytes);
    case BP_DTYPE_UINT8:
    case BP_DTYPE_BOOL:
      return converted<uint8_t, double>(bytes);
    case BP_DTYPE_UINT16:
      return converted<uint16_t, double>(bytes);
    case BP_DTYPE_UINT32:
      return converted<uint32_t, double>(bytes);
    case BP_DTYPE_UINT64:
      return converted<uint64_t, double>(bytes);
  }
  throw unreadable(dtype);
}

std::optional<std::vector<int64_t>> weight_ints(const view::Value& value) {
  if (auto wide = weight_elements<int64_t>(value, BP_DTYPE_INT64)) return wide;
  const auto narrow = weight_elements<int32_t>(value, BP_DTYPE_INT32);
  if (!narrow) return std::nullopt;
  return std::vector<int64_t>(narrow->begin(), narrow->end());
}

}  // namespace backplane::opencl
