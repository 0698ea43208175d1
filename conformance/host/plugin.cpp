// SPDX-License-Identifier: Apache-2.0
#include "host/plugin.h"

#include <dlfcn.h>

namespace backplane::conform {

Library::Library(const std::filesystem::path& file) : directory_(std::filesystem::absolute(file).parent_path()) {
  handle_ = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw Breach(fmt::format("the plugin does not load: {}", dlerror()));
  query_ = reinterpret_cast<bp_plugin_query_t>(dlsym(handle_, BP_PLUGIN_SYMBOL));
  if (query_ == nullptr) {
    dlclose(handle_);
    throw Breach(fmt::format("'{}' exports no {}", file.string(), BP_PLUGIN_SYMBOL));
  }
}

Library::~Library() {
  if (!is_kept_) dlclose(handle_);
}

const bp_plugin_t* Library::query(uint32_t version_min, uint32_t version_max) const {
  const std::string build = "conformance";
  const bp_host_offer_t offer = {.size = sizeof offer,
                                 .version_min = version_min,
                                 .version_max = version_max,
                                 .sanitizer = kOwnSanitizer,
                                 .build_id = {build.data(), build.size()}};
  const bp_plugin_t* plugin = query_(&offer);
  if (plugin == nullptr) throw Breach("bp_plugin_query returns NULL: a refusal must be a descriptor");
  return plugin;
}

Backend::Backend(const Library& library, Host& host) : host_(host), plugin_(library.query()) {
  if (plugin_->version == 0) {
    throw Breach(fmt::format("the plugin refuses this host with {}: {}", status_name(plugin_->refusal),
                             std::string_view(plugin_->refusal_text.data, plugin_->refusal_text.size)));
  }
  const struct {
    const char* name;
    const void* slot;
  } required[] = {{"create", reinterpret_cast<const void*>(plugin_->create)},
                  {"destroy", reinterpret_cast<const void*>(plugin_->destroy)},
                  {"device", plugin_->device},
                  {"coverage", plugin_->coverage},
                  {"program", plugin_->program},
                  {"instance", plugin_->instance}};
  for (const auto& [name, slot] : required) {
    if (slot == nullptr) throw Breach(fmt::format("the plugin's required slot '{}' is NULL", name));
  }
  Detail detail;
  const std::string directory = library.directory();
  const bp_backend_create_t how = {
      .size = sizeof how, .host = host.table(), .directory = {directory.data(), directory.size()}};
  const bp_status_t status = plugin_->create(&how, &raw_, detail.error());
  if (status != BP_OK) throw Breach(fmt::format("create returns {}: {}", status_name(status), detail.text()));
  if (raw_ == nullptr) throw Breach("create returns BP_OK but no backend");
}

Backend::~Backend() {
  host_.finish();
  plugin_->destroy(raw_);
}

uint32_t Backend::device_count() const {
  Detail detail;
  uint32_t count = 0;
  const bp_status_t status = plugin_->device->count(raw_, &count, detail.error());
  if (status != BP_OK) throw Breach(fmt::format("device count returns {}: {}", status_name(status), detail.text()));
  return count;
}

bp_device_info_t Backend::info(uint32_t index) const {
  Detail detail;
  bp_device_info_t info = {.size = sizeof info};
  const bp_status_t status = plugin_->device->info(raw_, index, &info, detail.error());
  if (status != BP_OK)
    throw Breach(fmt::format("info of device {} returns {}: {}", index, status_name(status), detail.text()));
  return info;
}

Device::Device(const Backend& backend, uint32_t index, const bp_device_open_t* how) : backend_(backend) {
  if (const uint32_t count = backend.device_count(); index >= count) {
    throw Breach(fmt::format("there is no device {}: the plugin has {}, numbered from 0", index,
                             count == 1 ? "1 device" : fmt::format("{} devices", count)));
  }
  info_ = backend.info(index);
  Detail detail;
  const bp_device_open_t defaults = {.size = sizeof defaults, .option_stride = sizeof(bp_option_t)};
  if (how == nullptr) how = &defaults;
  const bp_status_t status = plugin().device->open(backend.raw(), index, how, &raw_, detail.error());
  if (status != BP_OK)
    throw Breach(fmt::format("open of device {} returns {}: {}", index, status_name(status), detail.text()));
}

Device::~Device() {
  plugin().device->close(raw_);
}

uint32_t Device::newest_opset() const {
  const bp_coverage_api_t& api = *plugin().coverage;
  for (uint32_t i = 0; i < api.newest_opset_count; ++i) {
    const auto* opset = reinterpret_cast<const bp_opset_t*>(reinterpret_cast<const char*>(api.newest_opsets) +
                                                            uint64_t{i} * api.newest_opset_stride);
    if (opset->domain.size == 0) return opset->version;
  }
  return 0;
}

Answer Device::coverage(const Graph& graph, std::vector<Claim>& out_claims) const {
  out_claims.assign(graph.table()->node_count, {});
  const bp_coverage_sink_t sink = {.size = sizeof sink,
                                   .self = &out_claims,
                                   .verdicts =
                                       [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
                                         auto& claims = *static_cast<std::vector<Claim>*>(self);
                                         for (uint32_t i = 0; i < count; ++i) {
                                           const auto& v = *reinterpret_cast<const bp_verdict_t*>(
                                               reinterpret_cast<const char*>(verdicts) + uint64_t{i} * stride);
                                           if (v.node >= claims.size()) continue;
                                           Claim& claim = claims[v.node];
                                           claim = {v.answer, v.reason, v.compute_types,
                                                    std::string(v.detail.data, v.detail.size), claim.verdicts + 1};
                                         }
                                       },
                                   .groups = [](void*, const bp_group_t*, uint32_t, uint32_t) {}};
  const bp_coverage_query_t query = {
      .size = sizeof query, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  Detail detail;
  const bp_status_t status = plugin().coverage->query(raw_, &query, &sink, detail.error());
  return {status, Stage::kCoverage, detail.text()};
}

Answer Device::review(const Graph& graph) const {
  if (plugin().coverage->review == nullptr) return {BP_OK, Stage::kReview, ""};
  bp_review_t review = {.size = sizeof review, .split = [](void*, const uint32_t*, uint32_t) {}};
  Detail detail;
  const bp_compile_t what = {.size = sizeof what, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  const bp_status_t status = plugin().coverage->review(raw_, &what, &review, detail.error());
  if (status != BP_OK) return {status, Stage::kReview, detail.text()};
  if (review.answer == BP_REVIEW_ACCEPT) return {BP_OK, Stage::kReview, ""};
  return {BP_UNSUPPORTED, Stage::kReview,
          fmt::format("not accepted as a whole, reason {}: {}", review.reason, detail.text())};
}

}  // namespace backplane::conform
