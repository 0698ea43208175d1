// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "backplane/loader.h"
#include "face/handles.h"

using namespace backplane;
using face::fenced;

namespace {

// A device opened for its memory slots.
struct Opened {
  Device* device;
  bp_device_t* handle;
  const bp_memory_api_t* api;

  Status needs(const void* slot, const char* what) const {
    if (api && slot) return {};
    return {BP_UNSUPPORTED, "device '" + device->name() + "' offers no " + what};
  }
  Status status(const PluginError& error, bp_status_t code) const {
    return error.status(code, "device '" + device->name() + "'");
  }
};

Result<Opened> open(bp_env_t* env, uint32_t index) {
  BP_TRY(face::usable(env, "env"));
  BP_ASSIGN(Device * device, env->environment->device(index));
  BP_ASSIGN(bp_device_t * handle, device->open());
  return Opened{device, handle, device->backend().plugin->memory};
}

// One side of a copy brought to host memory.
Status copy_host(const Opened& device, const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) {
  BP_TRY(device.needs(device.api ? reinterpret_cast<const void*>(device.api->copy) : nullptr, "copies"));
  PluginError error;
  return device.status(error, device.api->copy(device.handle, &from, &to, bytes, nullptr, error.get()));
}

}  // namespace

bp_status_t bp_memory_space(bp_env_t* env, uint32_t device, uint32_t index, bp_space_t* out_space, uint32_t space_size,
                            bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!out_space) return {BP_INVALID_ARGUMENT, "out_space is NULL"};
    BP_ASSIGN(const Opened opened, open(env, device));
    bp_space_t space{};
    if (opened.api && opened.api->space) {
      PluginError plugin_error;
      BP_TRY(opened.status(plugin_error,
                           opened.api->space(opened.handle, index, &space, sizeof space, plugin_error.get())));
    } else if (index == 0) {
      space.name = abi::text("host");
      space.flags = BP_SPACE_HOST | BP_SPACE_MAPPABLE | BP_SPACE_COHERENT;
      space.alignment = 64;
    } else {
      return {BP_NOT_FOUND, "device '" + opened.device->name() + "' has one memory space, number 0"};
    }
    std::memcpy(static_cast<void*>(out_space), &space, std::min<size_t>(space_size, sizeof space));
    return {};
  });
}

bp_status_t bp_memory_allocate(bp_env_t* env, uint32_t device, uint32_t space, uint64_t bytes, bp_buffer_t* out_buffer,
                               bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!out_buffer) return {BP_INVALID_ARGUMENT, "out_buffer is NULL"};
    BP_ASSIGN(const Opened opened, open(env, device));
    bp_buffer_t buffer{};
    buffer.device = device;
    buffer.space = space;
    buffer.bytes = bytes;
    if (opened.api && opened.api->allocate) {
      PluginError plugin_error;
      BP_TRY(
          opened.status(plugin_error, opened.api->allocate(opened.handle, space, bytes, &buffer, plugin_error.get())));
      buffer.device = device;
    } else {
      buffer.address = env->environment->services().allocate(bytes, 64);
      if (!buffer.address) return {BP_RESOURCE_EXHAUSTED, "no host memory for " + std::to_string(bytes) + " bytes"};
    }
    *out_buffer = buffer;
    return {};
  });
}

bp_status_t bp_memory_import(bp_env_t* env, uint32_t device, uint32_t space, const bp_external_t* external,
                             bp_buffer_t* out_buffer, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!out_buffer) return {BP_INVALID_ARGUMENT, "out_buffer is NULL"};
    BP_ASSIGN(const bp_external_t known, abi::read(external, "external"));
    BP_TRY(abi::check_chain(known.chain));
    BP_ASSIGN(const Opened opened, open(env, device));
    BP_TRY(opened.needs(opened.api ? reinterpret_cast<const void*>(opened.api->import) : nullptr, "import of memory"));
    bp_buffer_t buffer{};
    PluginError plugin_error;
    BP_TRY(opened.status(plugin_error, opened.api->import(opened.handle, space, &known, &buffer, plugin_error.get())));
    buffer.device = device;
    *out_buffer = buffer;
    return {};
  });
}

bp_status_t bp_memory_export(bp_env_t* env, const bp_buffer_t* buffer, bp_external_t* out_external, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    if (!buffer) return {BP_INVALID_ARGUMENT, "buffer is NULL"};
    BP_ASSIGN(bp_external_t external, abi::read(out_external, "out_external"));
    BP_ASSIGN(const Opened opened, open(env, buffer->device));
    BP_TRY(opened.needs(opened.api ? reinterpret_cast<const void*>(opened.api->export_) : nullptr, "export of memory"));
    PluginError plugin_error;
    BP_TRY(opened.status(plugin_error, opened.api->export_(opened.handle, buffer, &external, plugin_error.get())));
    return abi::write(external, out_external, "out_external");
  });
}

void bp_memory_release(bp_env_t* env, bp_buffer_t* buffer) {
  fenced(nullptr, [&]() -> Status {
    if (!buffer) return {};
    BP_ASSIGN(const Opened opened, open(env, buffer->device));
    if (opened.api && opened.api->release)
      opened.api->release(opened.handle, buffer);
    else if (buffer->address)
      env->environment->services().release(buffer->address, buffer->bytes, 64);
    *buffer = bp_buffer_t{};
    return {};
  });
}

bp_status_t bp_memory_copy(bp_env_t* env, const bp_buffer_t* from, const bp_buffer_t* to, uint64_t bytes,
                           bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(face::usable(env, "env"));
    if (!from || !to) return {BP_INVALID_ARGUMENT, "a buffer is NULL"};
    if (bytes > from->bytes || bytes > to->bytes)
      return {BP_BUFFER_TOO_SMALL, std::to_string(bytes) + " bytes do not fit: the buffers have " +
                                       std::to_string(from->bytes) + " and " + std::to_string(to->bytes)};
    if (!from->memory && !to->memory) {
      std::memmove(host_address(*to), host_address(*from), bytes);
      return {};
    }
    if (!from->memory || !to->memory || from->device == to->device) {
      BP_ASSIGN(const Opened opened, open(env, from->memory ? from->device : to->device));
      return copy_host(opened, *from, *to, bytes);
    }
    std::vector<char> between(bytes);
    bp_buffer_t host{};
    host.address = between.data();
    host.bytes = bytes;
    BP_ASSIGN(const Opened source, open(env, from->device));
    BP_TRY(copy_host(source, *from, host, bytes));
    BP_ASSIGN(const Opened target, open(env, to->device));
    return copy_host(target, host, *to, bytes);
  });
}
