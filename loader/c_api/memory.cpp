// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "backplane/loader.h"
#include "base/keep.h"
#include "c_api/handles.h"
#include "run/device_status.h"
#include "run/framework_stream.h"

using namespace backplane;
using c_api::fenced;

namespace {

constexpr uint64_t kHostAlignment = 64;  // in bytes; for devices that have no function `space` or `allocate`

// A device that has been opened, with its memory functions.
struct Opened {
  Device* device;
  bp_device_t* handle;
  const bp_memory_api_t* api;
  SpareLanes* lanes;

  Status needs(const void* slot, const char* what) const {
    if (api && slot) return {};
    return {BP_UNSUPPORTED, "device '" + device->name() + "' does not support " + what};
  }
  Status status(const PluginError& error, bp_status_t code) const { return device_status(*device, error, code); }
  // Makes the device's writes visible to the host (BP_MAP_READ), or the host's writes to the device (BP_MAP_WRITE).
  Status flush(bp_map_t what, uint32_t access) const {
    if (!api->flush) return {};  // mappings are coherent
    what.access = access;
    PluginError error;
    return status(error, api->flush(handle, &what, error.get()));
  }
};

Result<Opened> open(bp_env_t* env, uint64_t id) {
  BP_TRY(c_api::usable(env, "env"));
  BP_ASSIGN(Device * device, env->environment->device_of(id));
  BP_ASSIGN(bp_device_t * handle, device->open());
  return Opened{device, handle, device->backend().plugin->memory, &env->lanes};
}

template <class Slot>
const void* slot(const bp_memory_api_t* api, Slot bp_memory_api_t::*which) {
  return api ? reinterpret_cast<const void*>(api->*which) : nullptr;
}

// Returns the plugin's handle of a framework's stream, or NULL for NULL. The stream must belong to this device.
Result<bp_stream_t*> stream_for(const Opened& device, bp_stream_t* stream) {
  if (!stream) return static_cast<bp_stream_t*>(nullptr);
  const FrameworkStream& known = *stream_of(stream);
  if (&known.device() != device.device)
    return Status(BP_INVALID_ARGUMENT, "the stream belongs to device '" + known.device().name() +
                                           "', but the memory to '" + device.device->name() + "'");
  return known.plugin_stream();
}

// Checks a framework's buffer, which may have 0 bytes.
Status check(const bp_env_t* env, const bp_buffer_t* buffer, const char* name) {
  BP_TRY(c_api::usable(env, "env"));
  if (!buffer) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  BP_TRY(abi::check_buffer(*buffer, name));
  if (!buffer->memory && !buffer->address && buffer->bytes)
    return {BP_INVALID_ARGUMENT,
            std::string(name) + " has " + std::to_string(buffer->bytes) + " bytes, but neither memory nor an address"};
  return check_place(*env->environment, *buffer, name).take_status();
}

Result<DeviceRun> order_for(const Opened& device, const bp_run_t* run) {
  BP_ASSIGN(const bp_run_t known, abi::read(run, "what.run"));
  BP_TRY(check_run(known));
  if (known.id >= kFirstLoaderRun)
    return Status(BP_INVALID_ARGUMENT, "what.run.id is " + std::to_string(known.id) + "; it must be below 2^63");
  if (!known.stream)
    return Status(BP_INVALID_ARGUMENT,
                  "what.run.stream is NULL: a copy or fill with a run is ordered in a stream; without "
                  "one, leave run NULL");
  BP_ASSIGN(DeviceRun order, DeviceRun::of(known));
  if (order.device() && order.device() != device.device)
    return Status(BP_INVALID_ARGUMENT, "what.run belongs to device '" + order.device()->name() +
                                           "', but the copy or fill to '" + device.device->name() + "'");
  return order;
}

// Calls `slot(device, what)` in the order of `what.run`. Without a run, waits for the work: in a stream if the device
// has streams, because that wait ends when the device is abandoned.
template <class What>
Status call(const Opened& device, bp_status_t(BP_CALL* slot)(bp_device_t*, const What*, bp_error_t*), What what) {
  const auto order_by = [&](const bp_run_t* run) -> Status {
    if (device.device->given_up()) return device.device->lost();
    what.run = run;
    PluginError error;
    return device.status(error, slot(device.handle, &what, error.get()));
  };
  if (what.run) {
    BP_ASSIGN(DeviceRun order, order_for(device, what.run));
    return order.passed(order_by(&order.run()));
  }
  if (!Lane::possible(*device.device)) return order_by(nullptr);
  Result<Lane> lane = device.lanes->take(*device.device);
  if (!lane.ok()) return order_by(nullptr);  // for example, the device has no stream left
  StreamEnd end = lane->complete(order_by);
  if (end.status.code() == BP_UNSUPPORTED) return order_by(nullptr);  // perhaps it is supported without a stream
  if (end.ended && end.status.ok()) device.lanes->give(lane.take());
  if (end.ended) return std::move(end.status);
  const uint32_t flags = end.status.flags() | BP_ERROR_ABANDONED;  // the device may still use the buffers
  return std::move(end.status).with_flags(flags);
}

Status copy_by(const Opened& device, const bp_copy_t& what) {
  BP_TRY(device.needs(slot(device.api, &bp_memory_api_t::copy), "copies"));
  return call(device, device.api->copy, what);
}

// Copies through host memory, because the target's device cannot read the source's memory.
Status copy_in_two(const Opened& source, const Opened& target, const bp_copy_t& what) {
  c_api::CopyMemory between(what.bytes);
  const bp_buffer_t host = between.buffer();
  between.used_by(*source.device);
  bp_copy_t half = what;
  half.to = &host;
  BP_TRY(copy_by(source, half));
  between.used_by(*target.device);
  half.from = &host;
  half.to = what.to;
  return copy_by(target, half);
}

}  // namespace

c_api::CopyMemory::~CopyMemory() {
  if (bytes_ && std::ranges::any_of(devices_, &Device::given_up)) keep_for_good(std::move(bytes_));
}

bp_buffer_t c_api::CopyMemory::buffer() const {
  bp_buffer_t buffer{};
  buffer.address = bytes_->data();
  buffer.bytes = bytes_->size();
  return buffer;
}

Result<c_api::CopyMemory> c_api::copy_to_host(Device& device, SpareLanes& lanes, const bp_buffer_t& from,
                                              uint64_t bytes) {
  BP_ASSIGN(bp_device_t * handle, device.open());
  CopyMemory to(bytes);
  to.used_by(device);
  const bp_buffer_t host = to.buffer();
  bp_buffer_t part = from;
  part.bytes = bytes;
  bp_copy_t what{};
  what.size = sizeof what;
  what.from = &part;
  what.to = &host;
  what.bytes = host.bytes;
  BP_TRY(copy_by({&device, handle, device.backend().plugin->memory, &lanes}, what));
  return to;
}

bp_status_t bp_memory_space(bp_env_t* env, uint64_t device, uint32_t index, bp_space_t* out_space, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_ASSIGN(const Opened opened, open(env, device));
    bp_space_t space{};
    space.size = sizeof space;
    if (slot(opened.api, &bp_memory_api_t::space)) {
      PluginError plugin_error;
      BP_TRY(opened.status(plugin_error, opened.api->space(opened.handle, index, &space, plugin_error.get())));
    } else if (index == 0) {
      space.name = abi::text("host");
      space.flags = BP_SPACE_HOST | BP_SPACE_MAPPABLE | BP_SPACE_COHERENT;
      space.alignment = kHostAlignment;
    } else {
      return {BP_NOT_FOUND, "there is no memory space " + std::to_string(index) + ": device '" + opened.device->name() +
                                "' has one, number 0"};
    }
    return abi::write(space, out_space, "out_space");
  });
}

bp_status_t bp_memory_allocate(bp_env_t* env, uint64_t device, const bp_allocate_t* what, bp_buffer_t* out_buffer,
                               bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!out_buffer) return {BP_INVALID_ARGUMENT, "out_buffer is NULL"};
    BP_ASSIGN(bp_allocate_t known, abi::read(what, "what"));
    BP_TRY(abi::check_chain(known.chain));
    BP_ASSIGN(const Opened opened, open(env, device));
    BP_ASSIGN(known.stream, stream_for(opened, known.stream));
    bp_buffer_t buffer{};
    if (slot(opened.api, &bp_memory_api_t::allocate)) {
      PluginError plugin_error;
      BP_TRY(opened.status(plugin_error, opened.api->allocate(opened.handle, &known, &buffer, plugin_error.get())));
    } else {
      if (known.space != 0)
        return {BP_NOT_FOUND, "there is no memory space " + std::to_string(known.space) + ": device '" +
                                  opened.device->name() + "' has one, number 0"};
      Services& services = env->environment->services();
      buffer.address = opened.device->backend().isolated ? services.allocate_shareable(known.bytes, kHostAlignment)
                                                         : services.allocate(known.bytes, kHostAlignment);
      if (!buffer.address)
        return {BP_RESOURCE_EXHAUSTED,
                "host memory is exhausted: cannot allocate " + std::to_string(known.bytes) + " bytes"};
    }
    buffer.device = device;
    buffer.space = known.space;
    buffer.bytes = known.bytes;
    *out_buffer = buffer;
    return {};
  });
}

bp_status_t bp_memory_import(bp_env_t* env, uint64_t device, const bp_import_t* what, bp_buffer_t* out_buffer,
                             bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!out_buffer) return {BP_INVALID_ARGUMENT, "out_buffer is NULL"};
    BP_ASSIGN(bp_import_t known, abi::read(what, "what"));
    BP_ASSIGN(const bp_external_t external, abi::read(known.external, "what.external"));
    BP_TRY(abi::check_chain(external.chain));
    BP_TRY(abi::check_flags(external.flags, BP_BUFFER_READ_ONLY, "what.external.flags"));
    BP_ASSIGN(const Opened opened, open(env, device));
    BP_TRY(opened.needs(slot(opened.api, &bp_memory_api_t::import), "importing memory"));
    known.external = &external;
    bp_buffer_t buffer{};
    PluginError plugin_error;
    BP_TRY(opened.status(plugin_error, opened.api->import(opened.handle, &known, &buffer, plugin_error.get())));
    buffer.device = device;
    buffer.space = known.space;
    buffer.bytes = external.bytes;
    buffer.flags = external.flags;
    *out_buffer = buffer;
    return {};
  });
}

bp_status_t bp_memory_export(bp_env_t* env, const bp_export_t* what, bp_external_t* out_external, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_ASSIGN(const bp_export_t known, abi::read(what, "what"));
    BP_TRY(check(env, known.buffer, "what.buffer"));
    BP_ASSIGN(bp_external_t external, abi::read(out_external, "out_external"));
    BP_ASSIGN(const Opened opened, open(env, known.buffer->device));
    BP_TRY(opened.needs(slot(opened.api, &bp_memory_api_t::export_), "exporting memory"));
    PluginError plugin_error;
    BP_TRY(opened.status(plugin_error, opened.api->export_(opened.handle, &known, &external, plugin_error.get())));
    return abi::write(external, out_external, "out_external");
  });
}

void bp_memory_release(bp_env_t* env, const bp_release_t* what) {
  fenced(nullptr, [&]() -> Status {
    BP_ASSIGN(bp_release_t known, abi::read(what, "what"));
    if (!known.buffer) return {};
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(Device* const device, env->environment->device_of(known.buffer->device));
    if (device->given_up()) {  // the device may still write to the memory
      keep_handle(known.buffer->memory);
      keep_handle(known.buffer->address);
      return {};
    }
    BP_ASSIGN(const Opened opened, open(env, known.buffer->device));
    bp_stream_t* const given = known.stream;
    BP_ASSIGN(known.stream, stream_for(opened, given));
    if (slot(opened.api, &bp_memory_api_t::release)) {
      opened.api->release(opened.handle, &known);
    } else if (known.buffer->address) {
      // The loader's own memory, which work in the stream may still use.
      if (given && !stream_of(given)->drain().ok()) {
        keep_handle(known.buffer->address);
        return {};
      }
      env->environment->services().release(known.buffer->address, known.buffer->bytes, kHostAlignment);
    }
    return {};
  });
}

bp_status_t bp_memory_map(bp_env_t* env, const bp_map_t* what, void** out_pointer, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_pointer, "out_pointer"));
    BP_ASSIGN(const bp_map_t known, abi::read(what, "what"));
    BP_TRY(check(env, known.buffer, "what.buffer"));
    BP_TRY(abi::check_flags(known.access, BP_MAP_READ | BP_MAP_WRITE, "what.access"));
    if (known.access & BP_MAP_WRITE) BP_TRY(abi::check_target(*known.buffer, "what.buffer"));
    if (!known.buffer->memory) {
      *out_pointer = host_address(*known.buffer);
      return {};
    }
    BP_ASSIGN(const Opened opened, open(env, known.buffer->device));
    BP_TRY(opened.needs(slot(opened.api, &bp_memory_api_t::map), "mappings"));
    PluginError plugin_error;
    BP_TRY(opened.status(plugin_error, opened.api->map(opened.handle, &known, out_pointer, plugin_error.get())));
    if (!(known.access & BP_MAP_READ)) return {};
    Status flushed = opened.flush(known, BP_MAP_READ);
    if (flushed.ok()) return {};
    if (opened.api->unmap) static_cast<void>(opened.api->unmap(opened.handle, &known, *out_pointer, nullptr));
    *out_pointer = nullptr;
    return flushed;
  });
}

bp_status_t bp_memory_unmap(bp_env_t* env, const bp_map_t* what, void* pointer, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_ASSIGN(const bp_map_t known, abi::read(what, "what"));
    BP_TRY(check(env, known.buffer, "what.buffer"));
    BP_TRY(abi::check_flags(known.access, BP_MAP_READ | BP_MAP_WRITE, "what.access"));
    if (known.access & BP_MAP_WRITE) BP_TRY(abi::check_target(*known.buffer, "what.buffer"));
    if (!known.buffer->memory) return {};
    BP_ASSIGN(const Opened opened, open(env, known.buffer->device));
    BP_TRY(opened.needs(slot(opened.api, &bp_memory_api_t::unmap), "mappings"));
    Status flushed = known.access & BP_MAP_WRITE ? opened.flush(known, BP_MAP_WRITE) : Status();
    PluginError plugin_error;
    Status unmapped =
        opened.status(plugin_error, opened.api->unmap(opened.handle, &known, pointer, plugin_error.get()));
    return flushed.ok() ? std::move(unmapped) : std::move(flushed);
  });
}

bp_status_t bp_memory_fill(bp_env_t* env, const bp_fill_t* what, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_fill_t known, abi::read(what, "what"));
    const bp_buffer_t* const buffer = known.buffer;
    BP_TRY(check(env, buffer, "what.buffer"));
    BP_TRY(abi::check_target(*buffer, "what.buffer"));
    const uint32_t size = known.pattern_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8)
      return {BP_INVALID_ARGUMENT, "a pattern of " + std::to_string(size) + " bytes: it must have 1, 2, 4 or 8"};
    const auto repeat = [&](char* to) {
      for (uint64_t i = 0; i < buffer->bytes; ++i) to[i] = reinterpret_cast<const char*>(&known.pattern)[i % size];
    };
    if (!buffer->memory) {
      if (known.run) return {BP_UNSUPPORTED, "host buffers cannot be filled in a stream: leave run NULL"};
      repeat(host_address(*buffer));
      return {};
    }
    BP_ASSIGN(const Opened opened, open(env, buffer->device));
    if (!slot(opened.api, &bp_memory_api_t::fill)) {
      if (known.run)
        return {BP_UNSUPPORTED, "device '" + opened.device->name() + "' cannot fill in a stream: leave run NULL"};
      c_api::CopyMemory filled(buffer->bytes);
      filled.used_by(*opened.device);
      const bp_buffer_t host = filled.buffer();
      repeat(host_address(host));
      bp_copy_t copy{};
      copy.size = sizeof copy;
      copy.from = &host;
      copy.to = buffer;
      copy.bytes = buffer->bytes;
      return copy_by(opened, copy);
    }
    return call(opened, opened.api->fill, known);
  });
}

bp_status_t bp_memory_copy(bp_env_t* env, const bp_copy_t* what, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_copy_t known, abi::read(what, "what"));
    const bp_buffer_t *const from = known.from, *const to = known.to;
    BP_TRY(abi::check_flags(known.flags, 0, "what.flags"));
    BP_TRY(check(env, from, "what.from"));
    BP_TRY(check(env, to, "what.to"));
    BP_TRY(abi::check_target(*to, "what.to"));
    if (known.bytes > from->bytes || known.bytes > to->bytes)
      return {BP_BUFFER_TOO_SMALL, "what.bytes is " + std::to_string(known.bytes) + ", but what.from has " +
                                       std::to_string(from->bytes) + " bytes and what.to has " +
                                       std::to_string(to->bytes)};
    if (from->memory && from->memory == to->memory && from->device == to->device &&
        std::max(from->offset, to->offset) - std::min(from->offset, to->offset) < known.bytes)
      return {BP_INVALID_ARGUMENT, std::to_string(known.bytes) + " bytes from offset " + std::to_string(from->offset) +
                                       " overlap those at offset " + std::to_string(to->offset) +
                                       " of the same memory: copy through another buffer"};
    if (!from->memory && !to->memory) {
      if (known.run) return {BP_UNSUPPORTED, "host buffers cannot be copied in a stream: leave run NULL"};
      std::memmove(host_address(*to), host_address(*from), known.bytes);
      return {};
    }
    BP_ASSIGN(const Opened target, open(env, to->memory ? to->device : from->device));
    if (!from->memory || !to->memory || from->device == to->device) return copy_by(target, known);
    BP_ASSIGN(const Opened source, open(env, from->device));
    if (target.device->reads_from(*source.device)) return copy_by(target, known);
    if (known.run)
      return {BP_UNSUPPORTED, "device '" + target.device->name() + "' cannot read the memory of '" +
                                  source.device->name() + "': leave run NULL to copy through host memory"};
    return copy_in_two(source, target, known);
  });
}
