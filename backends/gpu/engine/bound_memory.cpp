// SPDX-License-Identifier: Apache-2.0
#include "engine/bound_memory.h"

namespace backplane::gpu {
BoundMemory::BoundMemory(const Device& device, const Queue& queue, const bp_tensor_t& tensor) : queue_(queue) {
  const Driver& driver = device.driver();
  const bp_buffer_t& memory = tensor.buffer;
  const uint32_t element = std::max(1u, bytes_of(tensor.dtype));
  if (memory.memory != nullptr) {
    const Allocation& own = allocation(memory);
    source_ = own.buffer;
    offset_ = own.offset + memory.offset;
    const bool aligned = offset_ % device.caps().alignment == 0 && source_->is_aligned(element);
    transfer_ = aligned ? Transfer::kDirect : Transfer::kDeviceCopy;
    buffer_ = transfer_ == Transfer::kDeviceCopy ? driver.buffer(memory.bytes)
              : offset_ == 0                     ? source_
                                                 : driver.part(source_, offset_, memory.bytes);
    return;
  }
  host_ = static_cast<char*>(memory.address) + memory.offset;
  capacity_ = memory.bytes;
  const bool aligned = reinterpret_cast<uintptr_t>(host_) % element == 0;
  transfer_ = device.caps().unified && aligned && capacity_ != 0 ? Transfer::kShared : Transfer::kHostCopy;
  if (transfer_ == Transfer::kShared) {
    buffer_ = driver.import_host(host_, capacity_);
    map(*queue_, true);
  } else {
    buffer_ = driver.buffer(capacity_);
    pinned_ = driver.pin(host_, capacity_);
  }
}

BoundMemory::BoundMemory(const BoundMemory* input)
    : input_(input),
      queue_(input->queue_),
      transfer_(input->transfer_),
      buffer_(input->buffer_),
      source_(input->source_),
      offset_(input->offset_),
      host_(input->host_),
      capacity_(input->capacity_),
      pinned_(input->pinned_) {}

BoundMemory::~BoundMemory() {
  if (mapped_ != nullptr)
    static_cast<void>(sdk::caught([this] { queue_->unmap(*buffer_, mapped_, "unmapping bound memory"); }));
}

void BoundMemory::append_addresses(const Driver& driver, std::vector<uint64_t>& addresses) const {
  addresses.push_back(driver.export_memory(*buffer_));
  if (transfer_ == Transfer::kDeviceCopy) addresses.push_back(driver.export_memory(*source_) + offset_);
  if (transfer_ == Transfer::kHostCopy) addresses.push_back(reinterpret_cast<uintptr_t>(host_));
}

// OpenCL lets the host access shared memory only while the memory is mapped, and the device only while it is not. On
// devices that share memory with the host, mapping and unmapping copy nothing.
Event BoundMemory::map(CommandQueue& queue, bool blocking) {
  auto [mapped, event] =
      queue.map({buffer_.get(), 0}, capacity_, BP_MAP_READ | BP_MAP_WRITE, blocking, "mapping bound memory");
  mapped_ = mapped;
  return std::move(event);
}

uint64_t BoundMemory::begin(CommandQueue& queue, uint64_t bytes, bool is_input, std::vector<Event>& events) {
  if (void* const mapped = std::exchange(mapped_, nullptr))
    events.push_back(queue.unmap(*buffer_, mapped, "unmapping bound memory"));
  if (!is_input || bytes == 0 || transfer_ == Transfer::kDirect || transfer_ == Transfer::kShared) return 0;
  const std::string what = "copy of an input of " + std::to_string(bytes) + " bytes";
  events.push_back(transfer_ == Transfer::kHostCopy
                       ? queue.write({buffer_.get(), 0}, host_, bytes, false, what)
                       : queue.copy({buffer_.get(), 0}, {source_.get(), offset_}, bytes, what));
  return bytes;
}

uint64_t BoundMemory::end(CommandQueue& queue, uint64_t bytes, bool is_output, std::vector<Event>& events) {
  if (transfer_ == Transfer::kShared) {
    if (input_ != nullptr) return 0;  // mapped by the input
    events.push_back(map(queue, false));
    return 0;
  }
  if (!is_output || bytes == 0 || transfer_ == Transfer::kDirect) return 0;
  const std::string what = "copy of an output of " + std::to_string(bytes) + " bytes";
  events.push_back(transfer_ == Transfer::kHostCopy
                       ? queue.read(host_, {buffer_.get(), 0}, bytes, false, what)
                       : queue.copy({source_.get(), offset_}, {buffer_.get(), 0}, bytes, what));
  return bytes;
}

}  // namespace backplane::gpu
