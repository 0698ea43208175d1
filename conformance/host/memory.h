// SPDX-License-Identifier: Apache-2.0
// Memory of one tensor for a plugin to read or write.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "host/plugin.h"
#include "onnx/value.h"

namespace backplane::conform {

// In host memory with canaries on both sides; in the device's first space, without them, if that is not host memory.
class Memory {
 public:
  // `misalignment` moves the start off its 64 bytes. Throws Breach if the device provides no memory.
  Memory(const Device& device, bp_dtype_t dtype, std::vector<int64_t> extents, uint64_t misalignment = 0);
  Memory(const Device& device, const onnx::Tensor& content);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  bp_tensor_t tensor() const;
  // Fills the memory with a value that no case computes.
  void poison();
  void write(const onnx::Tensor& content);
  onnx::Tensor read() const;
  // Describes a write outside of the tensor in one line; empty if there was none.
  std::string breach() const;
  uint64_t bytes() const { return bytes_; }

 private:
  void move(void* host, bool to_device) const;

  const Device& device_;
  bp_dtype_t dtype_;
  std::vector<int64_t> extents_;
  uint64_t bytes_;
  std::byte* block_ = nullptr;  // with the canaries
  std::byte* data_ = nullptr;   // NULL in device memory
  bp_buffer_t buffer_ = {};
};

}  // namespace backplane::conform
