// SPDX-License-Identifier: Apache-2.0
#include "discover/survey.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/abi.h"
#include "base/forks.h"
#include "discover/call.h"
#include "discover/negotiate.h"
#include "discover/process_state.h"
#include "isolate/device_limits.h"
#include "isolate/library.h"

namespace backplane {
namespace {

constexpr uint32_t kMaxStride = 4096;  // bytes

using Create = decltype(bp_plugin_t::create);

std::mutex all_mutex;  // guards the map of mutexes below
const FreeInChildren<all_mutex> kFreeInChildren;

// The mutex that is held while a library creates a backend. A library creates one at a time, even for several
// environments of the process. The key is the library's function, because several paths may lead to one library, and
// the process, because a thread of the parent may hold the mutex at a fork. Never destroyed.
std::mutex& create_mutex(Create create) {
  const std::lock_guard lock(all_mutex);
  static auto& all = *new std::map<std::pair<pid_t, Create>, std::mutex>;
  return all[{::getpid(), create}];
}

}  // namespace

std::string wrong_size(const bp_device_info_t& info) {
  const std::pair<const char*, const bp_text_t*> texts[] = {{"name", &info.name},
                                                            {"vendor", &info.vendor},
                                                            {"driver", &info.driver},
                                                            {"arch", &info.arch},
                                                            {"pci", &info.pci}};
  for (const auto& [name, text] : texts)
    if (text->size > kMaxDeviceText)
      return fmt::format("its {} has {} bytes; at most {} are accepted", name, text->size, kMaxDeviceText);
  if (info.peer_count > kMaxDeviceElements)
    return fmt::format("it has {} peers; at most {} are accepted", info.peer_count, kMaxDeviceElements);
  if (info.property_count > kMaxDeviceElements)
    return fmt::format("it has {} properties; at most {} are accepted", info.property_count, kMaxDeviceElements);
  if (info.property_count > 0 && info.properties &&
      (info.property_stride < BP_SIZE_1_0(bp_option_t) || info.property_stride > kMaxStride))
    return fmt::format("its property_stride is {}: set it to sizeof(bp_option_t)", info.property_stride);
  for (uint32_t i = 0; info.properties && i < info.property_count; ++i) {
    const bp_option_t property = abi::element(info.properties, i, info.property_stride);
    if (property.name.size > kMaxDeviceText || property.value.size > kMaxDeviceText)
      return fmt::format("its property {} has {} bytes; at most {} are accepted", i,
                         std::max(property.name.size, property.value.size), kMaxDeviceText);
  }
  return {};
}

Refusal create_backend(Backend& backend, const std::string& folder, std::shared_ptr<Services> services,
                       Host::Options options) {
  if (!backend.host)
    backend.host = std::make_shared<Host>(std::move(services), backend.id, std::move(options), backend.plugin->version);
  bp_backend_create_t how{};
  how.size = sizeof how;
  how.host = backend.host->table();
  how.directory = abi::text(folder);
  if (backend.isolated) how.chain = backend.isolated->chain();
  PluginError error;
  ProcessPart changed = kUnchanged;
  const auto call_create = [&] {
    std::unique_lock<std::mutex> lock;
    if (!backend.isolated)
      lock = std::unique_lock(create_mutex(backend.plugin->create));  // an isolated backend has its own process
    const KeptProcessState kept(backend.isolated ? KeptParts::kNone : backend.kept_parts);
    const bp_status_t code =
        call_plugin(error, [&] { return backend.plugin->create(&how, &backend.handle, error.get()); });
    changed = kept.restore();
    return code;
  };
  const bp_status_t code = call_create();
  if (changed != kUnchanged)
    backend.host->services()
        .log()
        .about(LogCategory::kDiscover)
        .warning(fmt::format("{}: it changed {} while it was created: the loader restored the earlier state",
                             backend.library, text_of_part(changed)));
  if (code != BP_OK) {
    backend.handle = nullptr;
    return {BP_REFUSED_CREATE,
            std::string(error.status(code, fmt::format("{}: create failed", backend.library)).text())};
  }
  if (!backend.handle)
    return {BP_REFUSED_CREATE, fmt::format("{}: create returned BP_OK without a backend", backend.library)};
  return {};
}

Refusal survey_devices(Backend& backend, std::vector<bp_device_info_t>& out_devices, bool* out_none) {
  auto refused = [&](std::string_view why) {
    return Refusal{BP_REFUSED_DEVICES, fmt::format("{}: {}", backend.library, why)};
  };
  const bp_device_api_t& api = *backend.plugin->device;
  uint32_t count = 0;
  PluginError error;
  const KeptProcessState kept(backend.isolated ? KeptParts::kNone : backend.kept_parts);
  if (const bp_status_t code = call_plugin(error, [&] { return api.count(backend.handle, &count, error.get()); }))
    return refused(error.status(code, "its devices cannot be counted").text());
  if (out_none) *out_none = count == 0;
  if (count == 0)
    return refused(error.text().empty() ? "it finds no device here"
                                        : "it finds no device here: " + std::string(error.text()));
  if (count > kMaxDevices)
    return refused(fmt::format("it reports {} devices; at most {} are accepted", count, kMaxDevices));
  for (uint32_t i = 0; i < count; ++i) {
    bp_device_info_t info{};
    info.size = sizeof info;
    PluginError why;
    if (const bp_status_t code = call_plugin(why, [&] { return api.info(backend.handle, i, &info, why.get()); }))
      return refused(why.status(code, fmt::format("device {} cannot be described", i)).text());
    if (const std::string wrong = wrong_size(info); !wrong.empty())
      return refused(fmt::format("device {}: {}", i, wrong));
    info.size = sizeof info;
    info.index = i;
    out_devices.push_back(info);
  }
  return {};
}

}  // namespace backplane
