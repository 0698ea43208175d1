// SPDX-License-Identifier: Apache-2.0
// Fills in ONNXIFI's structs for tests.
#pragma once

#include "onnxifi/onnxifi.h"

namespace backplane::onnxifi {

inline constexpr uint64_t kThree[] = {3};

// Describes float[shape[0]] in host memory.
inline onnxTensorDescriptorV1 descriptor(const char* name, const float* data, const uint64_t* shape = kThree) {
  onnxTensorDescriptorV1 d{};
  d.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  d.name = name;
  d.dataType = ONNXIFI_DATATYPE_FLOAT32;
  d.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  d.dimensions = 1;
  d.shape = shape;
  d.buffer = reinterpret_cast<onnxPointer>(data);
  return d;
}

inline onnxMemoryFenceV1 fence(onnxEvent event = nullptr) {
  onnxMemoryFenceV1 fence{};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  fence.event = event;
  return fence;
}

}  // namespace backplane::onnxifi
