// SPDX-License-Identifier: Apache-2.0
// A backend's bp_plugin_t, and the one symbol that its plugin exports.
#pragma once

#include "backplane/sdk/tables.hpp"

namespace backplane::sdk {

template <class B>
class Plugin {
 public:
  // Implements bp_plugin_query. There is a static descriptor for each supported version and for each reason to refuse.
  static const bp_plugin_t* query(const bp_host_offer_t* offer) noexcept {
    static const bp_plugin_t kNoOffer = refuse(BP_INVALID_ARGUMENT, "the host's offer is NULL");
    static const bp_plugin_t kShortOffer =
        refuse(BP_INVALID_ARGUMENT, "the size of the host's offer is too small; set it to sizeof(bp_host_offer_t)");
    static const bp_plugin_t kNoVersion =
        refuse(BP_INCOMPATIBLE, "the host and this plugin have no common ABI version");
    static const bp_plugin_t kOtherSanitizer =
        refuse(BP_INCOMPATIBLE, "the host and this plugin were built with different sanitizers; build both alike");
    static const auto kAccepted = accept(std::make_index_sequence<kVersionCount>());
    if (offer == nullptr) return &kNoOffer;
    if (offer->size < kSize10<bp_host_offer_t>) return &kShortOffer;
    const uint32_t version = std::min<uint32_t>(offer->version_max, BP_ABI_VERSION);
    if (version < offer->version_min || version < BP_ABI_VERSION_MIN) return &kNoVersion;
    if (offer->sanitizer != kSanitizer) return &kOtherSanitizer;
    return &kAccepted[version - BP_ABI_VERSION_MIN];
  }

 private:
  using T = Tables<B>;
  using D = typename B::Device;
  using P = typename B::Program;
  using I = typename B::Instance;
  static constexpr size_t kVersionCount = BP_ABI_VERSION - BP_ABI_VERSION_MIN + 1;

  static bp_plugin_t base() {
    bp_plugin_t plugin{};
    plugin.size = sizeof plugin;
    plugin.version_min = BP_ABI_VERSION_MIN;
    plugin.version_max = BP_ABI_VERSION;
    plugin.sanitizer = kSanitizer;
    plugin.id = text(B::kAbout.id);
    plugin.name = text(B::kAbout.name);
    plugin.vendor = text(B::kAbout.vendor);
    plugin.release = text(B::kAbout.release);
    plugin.build_id = text(B::kAbout.build_id);
    return plugin;
  }
  static bp_plugin_t refuse(bp_status_t why, std::string_view words) {
    bp_plugin_t plugin = base();
    plugin.refusal = why;
    plugin.refusal_text = text(words);
    return plugin;
  }
  template <size_t... kMinor>
  static std::array<bp_plugin_t, kVersionCount> accept(std::index_sequence<kMinor...>) {
    return {accept(BP_ABI_VERSION_MIN + static_cast<uint32_t>(kMinor))...};
  }
  static bp_plugin_t accept(uint32_t version) {
    bp_plugin_t plugin = base();
    plugin.version = version;
    plugin.create = T::create;
    plugin.destroy = T::destroy_backend;
    if constexpr (overrides<Backend>(&B::extension)) plugin.get_extension = T::get_extension;
    plugin.device = device();
    plugin.coverage = coverage();
    plugin.program = program();
    plugin.instance = instance();
    if constexpr (std::is_base_of_v<Memory, D>) plugin.memory = memory();
    if constexpr (std::is_base_of_v<Sync, D>) plugin.sync = sync();
    if constexpr (std::is_base_of_v<Cache, D>) plugin.cache = cache();
    if constexpr (std::is_base_of_v<Refit, P>) plugin.weights = weights();
    return plugin;
  }

  static const bp_device_api_t* device() {
    static const bp_device_api_t kTable = [] {
      bp_device_api_t t{};
      t.size = sizeof t;
      t.count = T::count;
      t.info = T::info;
      t.open = T::open;
      t.close = T::close;
      if constexpr (overrides<Device>(&D::health)) t.health = T::health;
      if constexpr (overrides<Device>(&D::abandon)) t.abandon = T::abandon;
      return t;
    }();
    return &kTable;
  }
  static const bp_coverage_api_t* coverage() {
    static const bp_coverage_api_t kTable = [] {
      bp_coverage_api_t t{};
      t.size = sizeof t;
      t.newest_opsets = B::kOpsets;
      t.newest_opset_count = static_cast<uint32_t>(sizeof B::kOpsets / sizeof *B::kOpsets);
      t.newest_opset_stride = sizeof *B::kOpsets;
      t.query = T::query;
      if constexpr (overrides<Device>(&D::review)) t.review = T::review;
      if constexpr (overrides<Device>(&D::infer)) t.infer = T::infer;
      if constexpr (overrides<Device>(&D::opsets)) t.opsets = T::opsets;
      return t;
    }();
    return &kTable;
  }
  static const bp_program_api_t* program() {
    static const bp_program_api_t kTable = [] {
      bp_program_api_t t{};
      t.size = sizeof t;
      t.compile = T::compile;
      t.destroy = T::destroy_program;
      t.info = T::program_info;
      if constexpr (overrides<Program>(&P::output_extents)) t.output_extents = T::output_extents;
      return t;
    }();
    return &kTable;
  }
  static const bp_instance_api_t* instance() {
    static const bp_instance_api_t kTable = [] {
      bp_instance_api_t t{};
      t.size = sizeof t;
      t.create = T::create_instance;
      t.destroy = T::destroy_instance;
      t.bind = T::bind;
      t.extents = T::extents;
      t.run = overrides<Instance>(&I::submit) ? T::run : T::run_synchronously;
      return t;
    }();
    return &kTable;
  }
  static const bp_memory_api_t* memory() {
    static const bp_memory_api_t kTable = [] {
      bp_memory_api_t t{};
      t.size = sizeof t;
      t.space = T::space;
      t.allocate = T::allocate;
      t.release = T::release;
      if constexpr (overrides<Memory>(&D::map)) {
        t.map = T::map;
        t.unmap = T::unmap;
      }
      t.copy = T::copy;
      if constexpr (overrides<Memory>(&D::flush)) t.flush = T::flush;
      if constexpr (overrides<Memory>(&D::fill)) t.fill = T::fill;
      if constexpr (overrides<Memory>(&D::import_memory)) t.import = T::import_memory;
      if constexpr (overrides<Memory>(&D::export_memory)) t.export_ = T::export_memory;
      return t;
    }();
    return &kTable;
  }
  static const bp_sync_api_t* sync() {
    static const bp_sync_api_t kTable = [] {
      bp_sync_api_t t{};
      t.size = sizeof t;
      t.stream_create = T::stream_create;
      t.stream_destroy = T::stream_destroy;
      t.stream_wait = T::stream_wait;
      t.stream_export = T::stream_export;
      if constexpr (overrides<Sync>(&D::semaphore)) {
        t.semaphore_create = T::semaphore_create;
        t.semaphore_destroy = T::semaphore_destroy;
        t.semaphore_wait = T::semaphore_wait;
        t.semaphore_signal = T::semaphore_signal;
        t.semaphore_query = T::semaphore_query;
        if constexpr (ExportsSemaphores<D>::value) t.semaphore_export = T::semaphore_export;
      }
      return t;
    }();
    return &kTable;
  }
  static const bp_cache_api_t* cache() {
    static const bp_cache_api_t kTable = [] {
      bp_cache_api_t t{};
      t.size = sizeof t;
      t.serialize = T::serialize;
      t.validate = T::validate;
      t.deserialize = T::deserialize;
      return t;
    }();
    return &kTable;
  }
  static const bp_weights_api_t* weights() {
    static const bp_weights_api_t kTable = [] {
      bp_weights_api_t t{};
      t.size = sizeof t;
      t.refit = T::refit;
      t.read = T::read_weight;
      return t;
    }();
    return &kTable;
  }
};

}  // namespace backplane::sdk

// Defines the one symbol that a plugin exports.
#define BACKPLANE_PLUGIN(Backend)                                                                 \
  extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) { \
    return ::backplane::sdk::Plugin<Backend>::query(offer);                                       \
  }
