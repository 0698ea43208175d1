// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "abi.h"
#include "discover/environment.h"
#include "discover/negotiate.h"

namespace backplane {

Backend::Backend() : tables(std::make_unique<PluginTables>()), plugin(&tables->plugin) {}

Backend::~Backend() {
  if (handle) plugin->destroy(handle);
}

Device::Device(Backend& backend, uint32_t index, std::string name, const bp_device_info_t& info)
    : backend_(&backend), plugin_index_(info.index), name_(std::move(name)), info_(info) {
  info_.index = index;
  bp_text_t* const fields[] = {&info_.name, &info_.vendor, &info_.driver, &info_.arch, &info_.pci};
  for (size_t i = 0; i < std::size(fields); ++i) {
    texts_[i] = abi::view(*fields[i]);
    *fields[i] = abi::text(texts_[i]);
  }
}

Device::~Device() {
  if (handle_) backend_->plugin->device->close(handle_);
}

Result<bp_device_t*> Device::open() {
  std::lock_guard lock(mutex_);
  if (handle_) return handle_;
  bp_device_open_t how{};
  how.size = sizeof how;
  PluginError error;
  bp_device_t* opened = nullptr;
  if (const bp_status_t code =
          backend_->plugin->device->open(backend_->handle, plugin_index_, &how, &opened, error.get()))
    return error.status(code, fmt::format("device {} cannot be opened", name_));
  if (!opened) return Status(BP_INTERNAL, fmt::format("device {}: its plugin said BP_OK and opened nothing", name_));
  return handle_ = opened;
}

}  // namespace backplane
