// SPDX-License-Identifier: Apache-2.0
// Tensors and nodes of the test libraries.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "onnxifi/onnxifi.h"

namespace vendor {

using Shape = std::vector<int64_t>;

inline size_t count(const Shape& shape) {
  size_t n = 1;
  for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
  return n;
}

struct Tensor {
  Shape shape;
  std::vector<float> data;  // also holds integers, which are small enough to be exact
};

inline size_t size_of(uint64_t dtype) {
  return dtype == ONNXIFI_DATATYPE_INT64 ? sizeof(int64_t) : sizeof(float);
}

// Reads float32 or int64 elements. `data` may be unaligned.
inline std::vector<float> numbers(uint64_t dtype, const void* data, size_t count) {
  std::vector<float> result(count);
  if (dtype != ONNXIFI_DATATYPE_INT64) {
    std::memcpy(result.data(), data, count * sizeof(float));
    return result;
  }
  std::vector<int64_t> integers(count);
  std::memcpy(integers.data(), data, count * sizeof(int64_t));
  return {integers.begin(), integers.end()};
}

struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Shape> ints;
};

}  // namespace vendor
