// SPDX-License-Identifier: Apache-2.0
// The memory in which an isolated backend's device works: host memory, or a space of the device, to and from which
// tensors are copied in every run.
#pragma once

#include <cstdint>
#include <utility>

#include "backplane/plugin.h"
#include "base/status.h"

namespace backplane::isolate {

class DeviceMemory {
 public:
  DeviceMemory() = default;  // host memory
  static Result<DeviceMemory> of(const bp_plugin_t& plugin, const bp_device_info_t& info, bp_device_t* device,
                                 uint64_t id);

  bool is_host() const { return api_ == nullptr; }
  Result<bp_buffer_t> allocate(uint64_t bytes) const;
  void release(const bp_buffer_t& buffer) const;
  Status copy(const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) const;

 private:
  const bp_memory_api_t* api_ = nullptr;
  bp_device_t* device_ = nullptr;
  uint64_t id_ = 0;
  uint32_t space_ = 0;
};

// A buffer in a device's memory. The destructor releases it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const DeviceMemory& memory, const bp_buffer_t& buffer) : memory_(&memory), buffer_(buffer) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~DeviceBuffer() {
    if (memory_) memory_->release(buffer_);
  }
  const bp_buffer_t& get() const { return buffer_; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  const DeviceMemory* memory_ = nullptr;
  bp_buffer_t buffer_{};
};

}  // namespace backplane::isolate
