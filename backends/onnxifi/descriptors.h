// SPDX-License-Identifier: Apache-2.0
// Tensor descriptors in the layout that a library expects: that of ONNXIFI 1.0, or the longer layout of a later fork of
// ONNXIFI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backplane/sdk.hpp"
#include "onnxifi/onnxifi.h"

namespace onnxifi_backend {

// The fork's descriptor: quantization parameters come before the buffer's address.
struct ForkDescriptor {
  int32_t tag;
  const char* name;
  onnxEnum data_type;
  onnxEnum memory_type;
  uint32_t dimensions;
  const uint64_t* shape;
  uint32_t quantization_axis;
  uint64_t quantization_params;  // 0: not quantized
  const float* scales;
  const int32_t* biases;
  uint8_t is_offline;  // the descriptor carries no data
  onnxPointer buffer;
};
static_assert(sizeof(ForkDescriptor) == 96 && offsetof(ForkDescriptor, buffer) == 88);
static_assert(sizeof(onnxTensorDescriptorV1) == 56 && offsetof(onnxTensorDescriptorV1, buffer) == 48);

// The name, type and extents of a tensor to describe. Tensors are dense, in host memory.
struct Described {
  std::string name;
  bp_dtype_t dtype = 0;
  std::vector<uint64_t> shape;
};

class Descriptors {
 public:
  // `what` must outlive the descriptors and not be moved or changed.
  Descriptors(bool is_fork, const std::vector<Described>& what);

  void set_buffer(size_t i, const void* address);
  uint32_t count() const { return static_cast<uint32_t>(is_fork_ ? fork_.size() : plain_.size()); }
  // Returns NULL if there are no descriptors.
  const onnxTensorDescriptorV1* data() const;

 private:
  bool is_fork_;
  std::vector<onnxTensorDescriptorV1> plain_;
  std::vector<ForkDescriptor> fork_;
};

}  // namespace onnxifi_backend
