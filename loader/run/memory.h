// SPDX-License-Identifier: Apache-2.0
// The kinds of memory that hold a run's buffers: host memory, or a space of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backplane/memory.h"
#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// All members are thread-safe.
class Memory {
 public:
  // Host memory whose buffers start at multiples of `alignment`.
  explicit Memory(Services& services, uint64_t alignment = 64) : services_(&services), alignment_(alignment) {}
  // Host memory that processes of isolated backends can map.
  static Memory shareable(Services& services);
  // The memory in which a device works. That is host memory if the device's first space is host memory or its plugin
  // has no function `space`. Opens the device.
  static Result<Memory> of(Device& device, Services& services);
  // An additional space of a device that works on host memory. It holds buffers that the framework allocated there,
  // values that only this device's islands use, and copies of values that several of them read. Opens the device.
  // BP_UNSUPPORTED: the space is host memory, or the plugin cannot copy.
  static Result<Memory> of_space(Device& device, uint32_t space, Services& services);
  // The index of the first space that is the device's own memory and not host memory; BP_NONE if there is none, or if
  // the backend does not allocate, release and copy memory. May open the device.
  static Result<uint32_t> own_space(Device& device);

  // Null: host memory.
  Device* device() const { return device_; }
  // Whether other processes may change its buffers at any time. Only isolated backends and the framework work on them.
  bool is_shareable() const { return shareable_; }
  // Every buffer starts at a multiple of this many bytes.
  uint64_t alignment() const { return alignment_; }
  // Whether the device can import host memory and use it in place.
  bool shares_host() const { return shares_host_; }
  // Whether writes to imported memory become visible without a flush.
  bool coherent() const { return coherent_ || !api_ || !api_->flush; }
  // For a memory from `of_space`: whether the device's islands can use its buffers without a copy.
  bool zero_copy() const { return zero_copy_; }

  Result<bp_buffer_t> allocate(uint64_t bytes) const;
  // Imports `bytes` bytes of host memory as a buffer. Only for a memory that `shares_host`; returns the plugin's error
  // if it refuses this memory.
  Result<bp_buffer_t> import(void* host, uint64_t bytes) const;
  // Frees an allocated or imported buffer and clears `buffer`. Keeps the memory if the device was abandoned.
  void release(bp_buffer_t& buffer) const;
  // Makes writes to imported memory visible: with BP_MAP_WRITE the host's writes to the device, with BP_MAP_READ the
  // device's writes to the host.
  Status flush(const bp_buffer_t& buffer, uint32_t access) const;

 private:
  friend Status copy(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory, const bp_buffer_t& to,
                     uint64_t bytes, const bp_run_t* run);
  Result<bp_buffer_t> from_framework(const bp_allocate_t& what) const;
  Status status(PluginError& error, bp_status_t code) const;

  Services* services_;
  Device* device_ = nullptr;
  bp_device_t* handle_ = nullptr;
  const bp_memory_api_t* api_ = nullptr;
  uint32_t space_ = 0;
  uint32_t import_space_ = 0;
  uint64_t alignment_ = 64;
  bool shares_host_ = false;
  bool coherent_ = false;
  bool zero_copy_ = false;
  bool shareable_ = false;
};

// Checks where a framework's buffer is. Returns its device, or null for host memory that belongs to no device.
// BP_NOT_FOUND: there is no such device or space. BP_INVALID_ARGUMENT: buffer.memory is NULL, but the space is not host
// memory; the kind of the space is queried from the device, which this opens.
Result<Device*> check_place(const Environment& environment, const bp_buffer_t& buffer, std::string_view name);

// Whether `copy` can copy from `from` to `to`. If not, two copies through host memory are needed.
bool direct(const Memory& from, const Memory& to);

// Copies in the stream of `run`; without `run`, the copy is complete on return. BP_UNSUPPORTED unless
// direct(from_memory, to_memory).
Status copy(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory, const bp_buffer_t& to,
            uint64_t bytes, const bp_run_t* run = nullptr);
// The device whose plugin copies between two memories; null: the host copies.
inline Device* copier(const Memory& from, const Memory& to) {
  return to.device() ? to.device() : from.device();
}

// Returns a number that identifies an allocation. A handle or address does not, because it may be reused.
uint64_t new_generation();

// Returns `bytes` bytes of a buffer, starting at `offset`, as a buffer.
bp_buffer_t part(const bp_buffer_t& whole, uint64_t offset, uint64_t bytes);
// The host address of a buffer in host memory.
char* host_address(const bp_buffer_t& buffer);

// Owns one buffer: an allocation, which grows when needed and never shrinks, or an import of host memory. Each `memory`
// must outlive the buffer.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept;
  ~Block() { reset(); }
  // Ensures room for at least `bytes` bytes. Loses the contents if a new allocation is needed.
  Status reserve(const Memory& memory, uint64_t bytes);
  // Imports host memory. Does nothing if the block already is an import of that memory.
  Status import(const Memory& memory, void* host, uint64_t bytes);
  void reset();
  bool is_import() const { return host_ != nullptr; }
  // `bytes` of the buffer is the block's capacity.
  const bp_buffer_t& buffer() const { return buffer_; }
  uint64_t generation() const { return generation_; }

 private:
  const Memory* memory_ = nullptr;
  bp_buffer_t buffer_{};
  uint64_t generation_ = 0;
  void* host_ = nullptr;  // the imported host memory; null: the block is an allocation
};

}  // namespace backplane
