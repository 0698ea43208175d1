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

std::optional<std::vector<int64_t>> weight_ints(const view::Value& value) {
  if (auto wide = weight_elements<int64_t>(value, BP_DTYPE_INT64)) return wide;
  const auto narrow = weight_elements<int32_t>(value, BP_DTYPE_INT32);
  if (!narrow) return std::nullopt;
  return std::vector<int64_t>(narrow->begin(), narrow->end());
}

}  // namespace backplane::opencl
