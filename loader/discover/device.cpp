// SPDX-License-Identifier: Apache-2.0
#include "discover/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "base/abi.h"
#include "base/keep.h"
#include "discover/call.h"
#include "discover/negotiate.h"
#include "discover/process_state.h"
#include "isolate/library.h"

namespace backplane {
namespace {

// The error of a device that was abandoned, for when there is no memory for a text. Created when the loader is loaded.
const Status& lost_device = *new Status(Status(BP_DEVICE_LOST, {}).with_flags(BP_ERROR_DEVICE_LOST));

}  // namespace

Backend::Backend() : tables(std::make_unique<PluginTables>()), plugin(&tables->plugin) {}

Backend::~Backend() {
  if (given_up) {
    keep_for_good(host);
    keep_value_for_good(handle);
    return;
  }
  if (host) host->finish();  // also if `create` failed: the plugin may have submitted tasks before
  if (!handle) return;
  call_plugin([&] { plugin->destroy(handle); });
}

Status Backend::ensure_loaded() {
  const std::lock_guard lock(load_mutex);
  if (!load) return {};
  BP_TRY(load());
  load = nullptr;
  return {};
}

Device::Device(Backend& backend, uint32_t index, std::string name, const bp_device_info_t& info, uint32_t siblings)
    : backend_(&backend), plugin_index_(info.index), name_(std::move(name)), info_(info) {
  info_.index = index;
  bp_text_t* const fields[] = {&info_.name, &info_.vendor, &info_.driver, &info_.arch, &info_.pci};
  for (size_t i = 0; i < std::size(fields); ++i) {
    texts_[i] = abi::view(*fields[i]);
    *fields[i] = abi::text(texts_[i]);
  }
  const uint32_t first = index - plugin_index_;  // the index of the backend's device 0
  for (uint32_t i = 0; info.peers && i < info.peer_count; ++i)
    if (info.peers[i] < siblings) peers_.push_back(first + info.peers[i]);
  for (uint32_t i = 0; info.properties && i < info.property_count; ++i) {
    const bp_option_t property = abi::element(info.properties, i, info.property_stride);
    property_texts_.push_back({abi::string(property.name), abi::string(property.value)});
  }
  for (const auto& [property, value] : property_texts_) properties_.push_back({abi::text(property), abi::text(value)});
  info_.peers = peers_.data();
  info_.peer_count = static_cast<uint32_t>(peers_.size());
  info_.properties = properties_.data();
  info_.property_count = static_cast<uint32_t>(properties_.size());
  info_.property_stride = sizeof(bp_option_t);
}

bool Device::reads_from(const Device& other) const {
  return backend_ == other.backend_ && std::ranges::find(peers_, other.index()) != peers_.end();
}

Device::~Device() {
  if (!handle_) return;
  if (given_up_)
    keep_value_for_good(handle_);
  else
    call_plugin([&] { backend_->plugin->device->close(handle_); });
}

bool Device::is_named(std::string_view name) const {
  return name == name_ || name == fmt::format("{}:{}", backend_->id, plugin_index_);
}

void Device::give_up(std::string_view why) noexcept {
  backend_->given_up = true;
  bp_device_t* opened = nullptr;
  std::map<const void*, Listener> listeners;
  {
    const std::lock_guard lock(handle_mutex_);
    if (given_up_) return;
    try {
      why_ = why;
    } catch (const std::bad_alloc&) {
      why_ = "hangs";  // so short that std::string allocates nothing
    }
    given_up_ = true;
    opened = handle_;
    listeners = std::move(listeners_);
  }
  if (opened) abandon(opened);
  Status described;
  const Status* status = &lost_device;
  try {
    described = lost();
    status = &described;
  } catch (const std::bad_alloc&) {  // the listeners get the code alone
  }
  for (const auto& [key, listener] : listeners) {
    try {
      listener(*status);
    } catch (const std::bad_alloc&) {  // the framework's next call returns the error
    }
  }
}

void Device::listen(const void* key, Listener listener) {
  const std::lock_guard lock(handle_mutex_);
  if (!given_up_) listeners_[key] = std::move(listener);
}

void Device::unlisten(const void* key) {
  const std::lock_guard lock(handle_mutex_);
  listeners_.erase(key);
}

void Device::abandon(bp_device_t* opened) const {
  if (backend_->plugin->device->abandon) call_plugin([&] { backend_->plugin->device->abandon(opened); });
}

Status Device::lost() const {
  return Status(BP_DEVICE_LOST, fmt::format("device {} {} and was abandoned", name_, why_))
      .with_flags(BP_ERROR_DEVICE_LOST);
}

Result<bp_device_t*> Device::open() {
  if (given_up_) return lost();
  std::lock_guard lock(mutex_);
  if (handle_) return handle_;
  bp_device_open_t how{};
  return open_locked(how);
}

Status Device::open_as(const bp_device_open_t& wanted) {
  if (given_up_) return lost();
  std::lock_guard lock(mutex_);
  if (handle_)
    return {BP_BAD_STATE, fmt::format("device {} is already open: set its options before its first use", name_)};
  return open_locked(wanted).take_status();
}

Result<bp_device_t*> Device::open_locked(bp_device_open_t how) {
  BP_TRY(backend_->ensure_loaded());
  how.size = sizeof how;
  how.id = id();
  PluginError error;
  bp_device_t* opened = nullptr;
  const bp_device_api_t& api = *backend_->plugin->device;
  const auto call_open = [&] {
    const std::lock_guard lock(backend_->open_mutex);
    const KeptProcessState kept(backend_->isolated ? KeptParts::kNone : backend_->kept_parts);
    return call_plugin(error, [&] { return api.open(backend_->handle, plugin_index_, &how, &opened, error.get()); });
  };
  if (const bp_status_t code = call_open()) return error.status(code, fmt::format("device {} cannot be opened", name_));
  if (!opened)
    return Status(BP_INTERNAL, fmt::format("device {}: its plugin's `open` returned BP_OK but opened nothing", name_));
  const auto close = [&](bp_device_t* device) { call_plugin([&] { api.close(device); }); };
  std::unique_ptr<bp_device_t, decltype(close)> owned(opened, close);  // closes it if a later step fails
  BP_TRY(query_opsets(opened));
  framework_allocate_ = how.allocate;
  framework_ = how.self;
  {
    const std::lock_guard lock(handle_mutex_);
    handle_ = owned.release();
    if (!given_up_) return handle_;
  }
  abandon(opened);  // abandoned while the plugin opened it
  return lost();
}

// Queries the newest operator sets that the device supports. If the plugin has no slot `opsets`, reads those in its
// coverage table, which hold for all its devices.
Status Device::query_opsets(bp_device_t* opened) {
  constexpr uint32_t kMost = 1000;  // the most domains that are accepted
  constexpr uint32_t kMaxStride = 4096;
  constexpr uint64_t kMaxName = 4096;
  const bp_coverage_api_t& api = *backend_->plugin->coverage;
  bp_opsets_t known{};
  known.size = sizeof known;
  known.opsets = api.newest_opsets;
  known.opset_count = api.newest_opset_count;
  known.opset_stride = api.newest_opset_stride;
  if (api.opsets) {
    known.opsets = nullptr;
    known.opset_count = 0;
    PluginError error;
    BP_TRY(error.status(call_plugin(error, [&] { return api.opsets(opened, &known, error.get()); }),
                        fmt::format("device {}: its plugin cannot report its operator sets", name_)));
  }
  if (known.opsets && known.opset_count > 0 &&
      (known.opset_count > kMost || known.opset_stride < abi::Size<bp_opset_t>::k10 || known.opset_stride > kMaxStride))
    return Status(BP_INTERNAL, fmt::format("device {}: its plugin reports {} operator sets of {} bytes each; at most "
                                           "{} of {} to {} bytes are accepted",
                                           name_, known.opset_count, known.opset_stride, kMost,
                                           abi::Size<bp_opset_t>::k10, kMaxStride));
  newest_ = {};
  newest_.ir_version = known.ir_version;
  for (uint32_t i = 0; known.opsets && i < known.opset_count; ++i) {
    const bp_opset_t opset = abi::element(known.opsets, i, known.opset_stride);
    if (opset.domain.size > kMaxName)
      return Status(BP_INTERNAL,
                    fmt::format("device {}: its plugin reports a domain of {} bytes; at most {} are accepted", name_,
                                opset.domain.size, kMaxName));
    newest_.opsets[abi::string(opset.domain)] = opset.version;
  }
  return {};
}

}  // namespace backplane
