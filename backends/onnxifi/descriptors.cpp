// SPDX-License-Identifier: Apache-2.0
#include "descriptors.h"

namespace onnxifi_backend {

Descriptors::Descriptors(bool is_fork, const std::vector<Described>& what) : is_fork_(is_fork) {
  for (const Described& one : what) {
    const auto dimensions = static_cast<uint32_t>(one.shape.size());
    if (is_fork) {
      ForkDescriptor descriptor{};
      descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
      descriptor.name = one.name.c_str();
      descriptor.data_type = one.dtype;
      descriptor.memory_type = ONNXIFI_MEMORY_TYPE_CPU;
      descriptor.dimensions = dimensions;
      descriptor.shape = one.shape.data();
      fork_.push_back(descriptor);
    } else {
      onnxTensorDescriptorV1 descriptor{};
      descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
      descriptor.name = one.name.c_str();
      descriptor.dataType = one.dtype;
      descriptor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
      descriptor.dimensions = dimensions;
      descriptor.shape = one.shape.data();
      plain_.push_back(descriptor);
    }
  }
}

void Descriptors::set_buffer(size_t i, const void* address) {
  (is_fork_ ? fork_[i].buffer : plain_[i].buffer) = reinterpret_cast<onnxPointer>(address);
}

const onnxTensorDescriptorV1* Descriptors::data() const {
  if (count() == 0) return nullptr;
  return is_fork_ ? reinterpret_cast<const onnxTensorDescriptorV1*>(fork_.data()) : plain_.data();
}

}  // namespace onnxifi_backend
