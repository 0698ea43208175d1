// SPDX-License-Identifier: Apache-2.0
// Memory of one tensor, which a plugin reads or writes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "host/plugin.h"
#include "onnx/value.h"

namespace backplane::conform {

// Host memory with canaries on both sides. If the device's first space is not host memory, memory of that space without
// canaries.
class Memory {
 public:
  // Host memory begins `misalignment` bytes after a 64-byte boundary. Throws Breach if the device provides no memory.
  Memory(const Device& device, bp_dtype_t dtype, std::vector<int64_t> extents, uint64_t misalignment = 0);
  Memory(const Device& device, const onnx::Tensor& content);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  bp_tensor_t tensor() const;
  // Fills the memory with a value that hardly any case computes.
  void poison();
  void write(const onnx::Tensor& content);
  onnx::Tensor read() const;
  // Describes a write outside the tensor in one line. Empty if there was none, and for device memory.
  std::string breach() const;
  uint64_t bytes() const { return bytes_; }

 private:
  void move(void* host, bool to_device) const;

  const Device& device_;
  bp_dtype_t dtype_;
  std::vector<int64_t> extents_;
  uint64_t bytes_;
  std::byte* block_ = nullptr;  // the allocation with its canaries
  std::byte* data_ = nullptr;   // NULL if the tensor is in device memory
  bp_buffer_t buffer_ = {};
};

}  // namespace backplane::conform
