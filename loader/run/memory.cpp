// SPDX-License-Identifier: Apache-2.0
#include "run/memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "run/device_status.h"

namespace backplane {
namespace {

constexpr uint64_t kMaxHostAlignment = 4096;  // the largest alignment that bp_host_t.allocate supports

Result<bp_space_t> space_of(const Device& device, const bp_memory_api_t& api, bp_device_t* handle, uint32_t index) {
  if (device.given_up()) return device.lost();
  bp_space_t space{};
  space.size = sizeof space;
  PluginError error;
  BP_TRY(error.status(api.space(handle, index, &space, error.get()), "device '" + device.name() + "'"));
  if (space.alignment == 0 || (space.alignment & (space.alignment - 1)) != 0)
    return Status(BP_INTERNAL, "device '" + device.name() + "' reports an alignment of " +
                                   std::to_string(space.alignment) + ", which is not a power of two");
  return space;
}

bool imports(const bp_space_t& space, uint32_t kind) {
  return space.imports &&
         std::find(space.imports, space.imports + space.import_count, kind) != space.imports + space.import_count;
}

}  // namespace

Result<Memory> Memory::of(Device& device, Services& services) {
  Memory memory(services);
  BP_ASSIGN(bp_device_t * handle, device.open());
  const bp_memory_api_t* api = device.backend().plugin->memory;
  if (!api || !api->space) {
    if (device.backend().isolated)
      memory.alignment_ = kMaxHostAlignment;  // the alignment that the device requires is not known in this process
    return memory;
  }

  bool chosen = false;
  const uint32_t count = std::max(1u, device.info().space_count);
  const bool unified = device.info().flags & BP_DEVICE_UNIFIED_MEMORY;
  for (uint32_t i = 0; i < count; ++i) {
    BP_ASSIGN(const bp_space_t space, space_of(device, *api, handle, i));
    const uint64_t alignment = std::max<uint64_t>(space.alignment, 64);
    if (i == 0 && (space.flags & BP_SPACE_HOST)) {
      memory.alignment_ = std::min(alignment, kMaxHostAlignment);
      return memory;
    }
    if (!chosen && ((space.flags & BP_SPACE_DEVICE) || i == 0)) {
      chosen = space.flags & BP_SPACE_DEVICE;
      memory.space_ = i;
      memory.alignment_ = alignment;
    }
    if (unified && api->import && !memory.shares_host_ && imports(space, BP_EXTERNAL_HOST_POINTER) &&
        alignment <= kMaxHostAlignment) {
      memory.shares_host_ = true;
      memory.import_space_ = i;
      memory.coherent_ = space.flags & BP_SPACE_COHERENT;
      memory.alignment_ = std::max(memory.alignment_, alignment);
    }
  }
  if (!api->allocate || !api->release || !api->copy)
    return Status(BP_UNSUPPORTED,
                  "device '" + device.name() +
                      "' has memory of its own, but its plugin lacks the slot allocate, release or copy");
  memory.device_ = &device;
  memory.handle_ = handle;
  memory.api_ = api;
  return memory;
}

Result<Memory> Memory::of_space(Device& device, uint32_t index, Services& services) {
  Memory memory(services);
  BP_ASSIGN(memory.handle_, device.open());
  memory.api_ = device.backend().plugin->memory;
  bp_space_t space{};
  space.flags = BP_SPACE_HOST;
  if (memory.api_ && memory.api_->space) {
    BP_ASSIGN(space, space_of(device, *memory.api_, memory.handle_, index));
  }
  const auto unusable = [&](const char* why) {
    return Status(BP_UNSUPPORTED, "a buffer in space " + std::to_string(index) + " of device '" + device.name() +
                                      "' cannot be used: " + why + "; bind host memory instead");
  };
  if (space.flags & BP_SPACE_HOST) return unusable("the device has no memory of its own in that space");
  if (!memory.api_->copy) return unusable("the plugin cannot copy (it lacks the slot copy)");
  memory.device_ = &device;
  memory.space_ = index;
  memory.alignment_ = std::max<uint64_t>(space.alignment, 64);
  memory.zero_copy_ = space.flags & BP_SPACE_DEVICE;
  memory.coherent_ = true;  // nothing is imported into it, so nothing must be flushed
  return memory;
}

Memory Memory::shareable(Services& services) {
  Memory memory(services, kMaxHostAlignment);  // the alignment that a device requires is not known in this process
  memory.shareable_ = true;
  return memory;
}

Result<uint32_t> Memory::own_space(Device& device) {
  const bp_memory_api_t* api = device.backend().plugin->memory;
  if (!api || !api->space || !api->allocate || !api->release || !api->copy) return BP_NONE;
  BP_ASSIGN(bp_device_t * handle, device.open());
  for (uint32_t i = 0; i < device.info().space_count; ++i) {
    BP_ASSIGN(const bp_space_t space, space_of(device, *api, handle, i));
    if ((space.flags & BP_SPACE_DEVICE) && !(space.flags & BP_SPACE_HOST)) return i;
  }
  return BP_NONE;
}

Status Memory::status(PluginError& error, bp_status_t code) const {
  return device_status(*device_, error, code);
}

Result<bp_buffer_t> Memory::allocate(uint64_t bytes) const {
  bytes = std::max<uint64_t>(bytes, 1);
  bp_buffer_t buffer{};
  if (device_) {
    if (device_->given_up()) return device_->lost();
    bp_allocate_t what{};
    what.size = sizeof what;
    what.space = space_;
    what.bytes = bytes;
    if (device_->framework_allocate()) {
      BP_ASSIGN(buffer, from_framework(what));
    } else {
      PluginError error;
      BP_TRY(status(error, api_->allocate(handle_, &what, &buffer, error.get())));
    }
    if (!buffer.memory)
      return Status(BP_INTERNAL, "device '" + device_->name() + "': allocate returned BP_OK without memory");
    buffer.device = device_->id();
    buffer.space = space_;
  } else {
    buffer.address =
        shareable_ ? services_->allocate_shareable(bytes, alignment_) : services_->allocate(bytes, alignment_);
    if (!buffer.address)
      return Status(BP_RESOURCE_EXHAUSTED,
                    "host memory is exhausted: cannot allocate " + std::to_string(bytes) + " bytes");
  }
  buffer.bytes = bytes;
  return buffer;
}

// Allocates from the framework. When the plugin releases the import, it returns the memory to the framework.
Result<bp_buffer_t> Memory::from_framework(const bp_allocate_t& what) const {
  bp_external_t external{};
  external.size = sizeof external;
  if (const bp_status_t code = device_->framework_allocate()(device_->framework(), &what, &external))
    return Status(code, "the framework's allocator refused " + std::to_string(what.bytes) + " bytes for device '" +
                            device_->name() + "'");
  bp_import_t import{};
  import.size = sizeof import;
  import.space = what.space;
  import.external = &external;
  bp_buffer_t buffer{};
  PluginError error;
  Status imported =
      external.bytes < what.bytes
          ? Status(BP_BUFFER_TOO_SMALL, "the framework's allocator returned " + std::to_string(external.bytes) +
                                            " bytes, but " + std::to_string(what.bytes) + " were requested")
      : device_->given_up() ? device_->lost()
      : !api_->import       ? Status(BP_UNSUPPORTED, "device '" + device_->name() + "' imports no memory")
                            : status(error, api_->import(handle_, &import, &buffer, error.get()));
  if (imported.ok()) return buffer;
  if (external.release) external.release(external.self);  // a failed import does not release the memory
  return imported;
}

Result<bp_buffer_t> Memory::import(void* host, uint64_t bytes) const {
  if (device_->given_up()) return device_->lost();
  bp_external_t external{};
  external.size = sizeof external;
  external.kind = BP_EXTERNAL_HOST_POINTER;
  external.handle = reinterpret_cast<uintptr_t>(host);
  external.bytes = bytes;
  bp_buffer_t buffer{};
  PluginError error;
  bp_import_t what{};
  what.size = sizeof what;
  what.space = import_space_;
  what.external = &external;
  BP_TRY(status(error, api_->import(handle_, &what, &buffer, error.get())));
  buffer.device = device_->id();
  buffer.space = import_space_;
  buffer.bytes = bytes;
  return buffer;
}

void Memory::release(bp_buffer_t& buffer) const {
  if (device_ && device_->given_up()) {
    keep_handle(buffer.memory);
  } else if (device_) {
    bp_release_t what{};
    what.size = sizeof what;
    what.buffer = &buffer;
    api_->release(handle_, &what);
  } else {
    services_->release(buffer.address, buffer.bytes, alignment_);
  }
  buffer = bp_buffer_t{};
}

Status Memory::flush(const bp_buffer_t& buffer, uint32_t access) const {
  if (coherent()) return {};
  if (device_->given_up()) return device_->lost();
  bp_map_t what{};
  what.size = sizeof what;
  what.access = access;
  what.buffer = &buffer;
  PluginError error;
  return status(error, api_->flush(handle_, &what, error.get()));
}

Result<Device*> check_place(const Environment& environment, const bp_buffer_t& buffer, std::string_view name) {
  const auto space = [&] { return std::string(name) + ".space is " + std::to_string(buffer.space); };
  if (!buffer.device && !buffer.memory) {
    if (buffer.space == 0) return static_cast<Device*>(nullptr);
    return Status(BP_NOT_FOUND, space() + ", but host memory that belongs to no device has space 0 only");
  }
  Result<Device*> found = environment.device_of(buffer.device);
  if (!found.ok()) return found.take_status().context(std::string(name) + ".device");
  Device& device = **found;
  const uint32_t count = std::max(1u, device.info().space_count);
  if (buffer.space >= count)
    return Status(BP_NOT_FOUND, space() + ", but device '" + device.name() + "' has " + std::to_string(count) +
                                    " spaces, counted from 0");
  if (buffer.memory || !buffer.bytes || device.given_up()) return &device;
  BP_ASSIGN(bp_device_t * handle, device.open());
  const bp_memory_api_t* const api = device.backend().plugin->memory;
  if (!api || !api->space) return &device;
  BP_ASSIGN(const bp_space_t known, space_of(device, *api, handle, buffer.space));
  if (known.flags & BP_SPACE_HOST) return &device;
  return Status(BP_INVALID_ARGUMENT, std::string(name) + ".memory is NULL, but space " + std::to_string(buffer.space) +
                                         " of device '" + device.name() +
                                         "' is not host memory: pass the handle, or device 0 for a host address");
}

bool direct(const Memory& from, const Memory& to) {
  const Device *a = from.device(), *b = to.device();
  if (!a || !b || a == b) return true;
  return b->reads_from(*a);
}

Status copy(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory, const bp_buffer_t& to,
            uint64_t bytes, const bp_run_t* run) {
  if (bytes == 0 && !run) return {};
  const Memory& by = to_memory.device() ? to_memory : from_memory;
  if (!by.device()) {
    std::memmove(host_address(to), host_address(from), bytes);
    return {};
  }
  if (!direct(from_memory, to_memory))
    return {BP_UNSUPPORTED, "device '" + to_memory.device()->name() + "' cannot read the memory of device '" +
                                from_memory.device()->name() + "': copy through host memory"};
  if (by.device()->given_up()) return by.device()->lost();
  bp_copy_t what{};
  what.size = sizeof what;
  what.from = &from;
  what.to = &to;
  what.bytes = bytes;
  what.run = run;
  PluginError error;
  return by.status(error, by.api_->copy(by.handle_, &what, error.get()));
}

uint64_t new_generation() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bp_buffer_t part(const bp_buffer_t& whole, uint64_t offset, uint64_t bytes) {
  bp_buffer_t buffer = whole;
  if (buffer.memory)
    buffer.offset += offset;
  else if (buffer.address)
    buffer.address = static_cast<char*>(buffer.address) + offset;
  buffer.bytes = bytes;
  return buffer;
}

char* host_address(const bp_buffer_t& buffer) {
  return static_cast<char*>(buffer.address) + buffer.offset;
}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  std::swap(generation_, other.generation_);
  std::swap(host_, other.host_);
  return *this;
}

Status Block::reserve(const Memory& memory, uint64_t bytes) {
  if (!host_ && memory_ == &memory && bytes <= buffer_.bytes) return {};
  reset();
  BP_ASSIGN(buffer_, memory.allocate(bytes));
  generation_ = new_generation();
  memory_ = &memory;
  return {};
}

Status Block::import(const Memory& memory, void* host, uint64_t bytes) {
  if (host_ && host_ == host && memory_ == &memory && bytes == buffer_.bytes) return {};
  reset();
  BP_ASSIGN(buffer_, memory.import(host, bytes));
  generation_ = new_generation();
  memory_ = &memory;
  host_ = host;
  return {};
}

void Block::reset() {
  if (memory_) memory_->release(buffer_);
  memory_ = nullptr;
  host_ = nullptr;
  buffer_ = bp_buffer_t{};
}

}  // namespace backplane
