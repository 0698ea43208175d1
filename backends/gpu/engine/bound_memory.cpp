// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

namespace backplane::opencl {
namespace {

const cl_event* list(const std::vector<cl_event>& events) {
  return events.empty() ? nullptr : events.data();
}
cl_uint count(const std::vector<cl_event>& events) {
  return static_cast<cl_uint>(events.size());
}

}  // namespace

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
    map(queue_, CL_TRUE, {}, nullptr);
  } else {
    buffer_ = device.buffer(capacity_);
  }
}

BoundMemory::~BoundMemory() {
  if (mapped_ != nullptr) clEnqueueUnmapMemObject(queue_, buffer_.get(), mapped_, 0, nullptr, nullptr);
}

// Shared memory belongs to the host while it is mapped, to the device otherwise: OpenCL promises nothing else, and on
// devices that share memory neither step copies.
void BoundMemory::map(cl_command_queue queue, cl_bool blocking, const std::vector<cl_event>& after,
                      cl_event* out_event) {
  cl_int status = CL_SUCCESS;
  void* const mapped = clEnqueueMapBuffer(queue, buffer_.get(), blocking, CL_MAP_READ | CL_MAP_WRITE, 0, capacity_,
                                          count(after), list(after), out_event, &status);
  check(status, "mapping bound memory");
  mapped_ = mapped;
}

uint64_t BoundMemory::begin(cl_command_queue queue, uint64_t bytes, bool is_input, std::vector<Event>& events) {
  cl_event event = nullptr;
  if (void* const mapped = std::exchange(mapped_, nullptr)) {
    check(clEnqueueUnmapMemObject(queue, buffer_.get(), mapped, 0, nullptr, &event), "unmapping bound memory");
    events.emplace_back(event);
  }
  if (!is_input || bytes == 0 || way_ == Way::kDirect || way_ == Way::kShared) return 0;
  const cl_int status =
      way_ == Way::kHostCopy
          ? clEnqueueWriteBuffer(queue, buffer_.get(), CL_FALSE, 0, bytes, host_, 0, nullptr, &event)
          : clEnqueueCopyBuffer(queue, source_.get(), buffer_.get(), offset_, 0, bytes, 0, nullptr, &event);
  check(status, "copy of an input of " + std::to_string(bytes) + " bytes");
  events.emplace_back(event);
  return bytes;
}

uint64_t BoundMemory::end(cl_command_queue queue, uint64_t bytes, bool is_output, const std::vector<cl_event>& after,
                          std::vector<Event>& events) {
  cl_event event = nullptr;
  if (way_ == Way::kShared) {
    map(queue, CL_FALSE, after, &event);
    events.emplace_back(event);
    return 0;
  }
  if (!is_output || bytes == 0 || way_ == Way::kDirect) return 0;
  const cl_int status = way_ == Way::kHostCopy ? clEnqueueReadBuffer(queue, buffer_.get(), CL_FALSE, 0, bytes, host_,
                                                                     count(after), list(after), &event)
                                               : clEnqueueCopyBuffer(queue, buffer_.get(), source_.get(), 0, offset_,
                                                                     bytes, count(after), list(after), &event);
  check(status, "copy of an output of " + std::to_string(bytes) + " bytes");
  events.emplace_back(event);
  return bytes;
}

}  // namespace backplane::opencl
