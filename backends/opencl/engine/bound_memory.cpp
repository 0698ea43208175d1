// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

namespace backplane::opencl {

BoundMemory::BoundMemory(const Device& device, cl_command_queue queue, const bp_tensor_t& tensor) : queue_(queue) {
  const bp_buffer_t& memory = tensor.buffer;
  if (memory.memory != nullptr) {
    const Allocation& own = allocation(memory);
    source_ = own.buffer;
    offset_ = own.offset + memory.offset;
    way_ = offset_ % device.facts().alignment == 0 ? Way::kDirect : Way::kDeviceCopy;
    buffer_ = way_ == Way::kDeviceCopy ? device.buffer(memory.bytes)
              : offset_ == 0           ? source_
                                       : device.part(source_, offset_, memory.bytes);
    return;
  }
  host_ = static_cast<char*>(memory.address) + memory.offset;
  capacity_ = memory.bytes;
  const bool aligned = reinterpret_cast<uintptr_t>(host_) % std::max(1u, bytes_of(tensor.dtype)) == 0;
  way_ = device.facts().unified && aligned && capacity_ != 0 ? Way::kShared : Way::kHostCopy;
  if (way_ == Way::kShared) {
    buffer_ = device.import_host(host_, capacity_);
    map();
  } else {
    buffer_ = device.buffer(capacity_);
  }
}

// Shared memory belongs to the host while it is mapped, to the device otherwise: OpenCL promises nothing else, and on
// devices that share memory neither step copies.
void BoundMemory::map() {
  cl_int status = CL_SUCCESS;
  mapped_ = clEnqueueMapBuffer(queue_, buffer_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, capacity_, 0, nullptr,
                               nullptr, &status);
  check(status, "mapping bound memory");
}

void BoundMemory::unmap() noexcept {
  if (mapped_ != nullptr) clEnqueueUnmapMemObject(queue_, buffer_.get(), mapped_, 0, nullptr, nullptr);
  mapped_ = nullptr;
}

uint64_t BoundMemory::begin(uint64_t bytes, bool is_input) {
  unmap();
  if (!is_input || bytes == 0 || way_ == Way::kDirect || way_ == Way::kShared) return 0;
  const cl_int status =
      way_ == Way::kHostCopy
          ? clEnqueueWriteBuffer(queue_, buffer_.get(), CL_FALSE, 0, bytes, host_, 0, nullptr, nullptr)
          : clEnqueueCopyBuffer(queue_, source_.get(), buffer_.get(), offset_, 0, bytes, 0, nullptr, nullptr);
  check(status, "copy of an input of " + std::to_string(bytes) + " bytes");
  return bytes;
}

uint64_t BoundMemory::end(uint64_t bytes, bool is_output) {
  if (way_ == Way::kShared) map();
  if (!is_output || bytes == 0 || way_ == Way::kDirect || way_ == Way::kShared) return 0;
  const cl_int status =
      way_ == Way::kHostCopy
          ? clEnqueueReadBuffer(queue_, buffer_.get(), CL_FALSE, 0, bytes, host_, 0, nullptr, nullptr)
          : clEnqueueCopyBuffer(queue_, buffer_.get(), source_.get(), 0, offset_, bytes, 0, nullptr, nullptr);
  check(status, "copy of an output of " + std::to_string(bytes) + " bytes");
  return bytes;
}

}  // namespace backplane::opencl
