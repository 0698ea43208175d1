// SPDX-License-Identifier: Apache-2.0
#include "isolate/serve/memory.h"

#include <algorithm>
#include <string>

#include "discover/call.h"

namespace backplane::isolate {

Result<DeviceMemory> DeviceMemory::of(const bp_plugin_t& plugin, const bp_device_info_t& info, bp_device_t* device,
                                      uint64_t id) {
  DeviceMemory memory;
  const bp_memory_api_t* api = plugin.memory;
  if (!api || !api->space) return memory;
  for (uint32_t i = 0; i < std::max(1u, info.space_count); ++i) {
    bp_space_t space{};
    space.size = sizeof space;
    PluginError error;
    BP_TRY(error.status(call_plugin(error, [&] { return api->space(device, i, &space, error.get()); }),
                        "space " + std::to_string(i) + " of the device cannot be described"));
    if (i == 0 && (space.flags & BP_SPACE_HOST)) return memory;
    if (!(space.flags & BP_SPACE_DEVICE)) continue;
    memory.space_ = i;
    break;
  }
  if (!api->allocate || !api->release || !api->copy)
    return Status(BP_UNSUPPORTED,
                  "the device has memory of its own, but its plugin lacks the slot allocate, release or copy");
  memory.api_ = api;
  memory.device_ = device;
  memory.id_ = id;
  return memory;
}

Result<bp_buffer_t> DeviceMemory::allocate(uint64_t bytes) const {
  bp_allocate_t what{};
  what.size = sizeof what;
  what.space = space_;
  what.bytes = std::max<uint64_t>(bytes, 1);
  bp_buffer_t buffer{};
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return api_->allocate(device_, &what, &buffer, error.get()); });
  if (code != BP_OK) return error.status(code, std::to_string(bytes) + " bytes of device memory cannot be allocated");
  if (!buffer.memory) return Status(BP_INTERNAL, "its plugin's `allocate` returned BP_OK without memory");
  buffer.device = id_;
  buffer.space = space_;
  buffer.bytes = what.bytes;
  return buffer;
}

void DeviceMemory::release(const bp_buffer_t& buffer) const {
  bp_release_t what{};
  what.size = sizeof what;
  what.buffer = &buffer;
  call_plugin([&] { api_->release(device_, &what); });
}

Status DeviceMemory::copy(const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) const {
  if (bytes == 0) return {};
  bp_copy_t what{};
  what.size = sizeof what;
  what.from = &from;
  what.to = &to;
  what.bytes = bytes;
  PluginError error;
  return error.status(call_plugin(error, [&] { return api_->copy(device_, &what, error.get()); }),
                      "tensor data cannot be copied");
}

}  // namespace backplane::isolate
