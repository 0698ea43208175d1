// SPDX-License-Identifier: Apache-2.0
#include "discover/negotiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/abi.h"
#include "base/release.h"
#include "base/status_text.h"
#include "cli/printable.h"
#include "discover/call.h"
#include "discover/library.h"
#include "discover/manifest.h"

namespace backplane {
namespace {

std::string version_text(uint32_t version) {
  return fmt::format("{}.{}", BP_VERSION_MAJOR(version), BP_VERSION_MINOR(version));
}

const char* sanitizer_name(uint32_t sanitizer) {
  switch (sanitizer) {
    case BP_SANITIZER_NONE:
      return "no sanitizer";
    case BP_SANITIZER_ADDRESS:
      return "the address sanitizer";
    case BP_SANITIZER_THREAD:
      return "the thread sanitizer";
    case BP_SANITIZER_MEMORY:
      return "the memory sanitizer";
    default:
      return "an unknown sanitizer";
  }
}

// A text of the plugin, made printable for errors.
std::string quoted(bp_text_t text) {
  return cli::printable(abi::view(text), 500);
}

bp_host_offer_t make_offer() {
  bp_host_offer_t offer{};
  offer.size = sizeof offer;
  offer.version_min = BP_ABI_VERSION_MIN;
  offer.version_max = BP_ABI_VERSION;
  offer.sanitizer = own_sanitizer();
  offer.build_id = abi::text(kBuildId);
  return offer;
}

Refusal check_agreement(const bp_plugin_t& plugin, const bp_host_offer_t& offer, std::string_view file) {
  if (plugin.sanitizer != offer.sanitizer)
    return {BP_REFUSED_SANITIZER, fmt::format("{} was built with {} and this loader with {}: build both sides alike",
                                              file, sanitizer_name(plugin.sanitizer), sanitizer_name(offer.sanitizer))};
  const std::string speaks =
      fmt::format("{} supports ABI {} to {} and this loader {} to {}", file, version_text(plugin.version_min),
                  version_text(plugin.version_max), version_text(offer.version_min), version_text(offer.version_max));
  if (plugin.version_max < offer.version_min || plugin.version_min > offer.version_max)
    return {BP_REFUSED_VERSION, speaks + ": install a build for this loader"};
  if (plugin.refusal != BP_OK)
    return {BP_REFUSED_BY_PLUGIN,
            fmt::format("{} refuses this host: {} ({})", file,
                        plugin.refusal_text.size ? quoted(plugin.refusal_text) : "without a reason",
                        status_text(plugin.refusal))};
  if (plugin.version < std::max(offer.version_min, plugin.version_min) ||
      plugin.version > std::min(offer.version_max, plugin.version_max))
    return {BP_REFUSED_VERSION, fmt::format("{}, but it chose {}", speaks, version_text(plugin.version))};
  return {};
}

}  // namespace

Refusal wrong_id(std::string_view file, std::string_view id, std::string_view expected) {
  return {BP_REFUSED_ID, fmt::format("{} has the id \"{}\", but its manifest states \"{}\": they must be the same",
                                     file, cli::printable(id, 500), expected)};
}

namespace {

Refusal check_id(const bp_plugin_t& plugin, std::string_view file, std::string_view expected) {
  if (!legal_backend_id(abi::view(plugin.id)))
    return {BP_REFUSED_ID, fmt::format("{} has the id \"{}\": an id is 1 to 32 characters of a-z, 0-9 and _", file,
                                       quoted(plugin.id))};
  if (!expected.empty() && abi::view(plugin.id) != expected) return wrong_id(file, abi::view(plugin.id), expected);
  return {};
}

// Copies the plugin's tables and reports the first table or slot that is missing, or the first table that is too small.
class Tables {
 public:
  template <class T>
  void copy(const T*& pointer, T& copy, const char* name, bool required) {
    if (!pointer) {
      if (required) complaint(fmt::format("table \"{}\" is missing", name));
      return;
    }
    auto known = abi::read(pointer, name);
    if (!known.ok()) return complaint(std::string(known.status().text()));
    copy = *known;
    pointer = &copy;
  }

  template <class F>
  void require(F* slot, const char* name) {
    if (!slot) complaint(fmt::format("slot \"{}\" is missing", name));
  }

  Refusal refusal(std::string_view file) const {
    if (complaint_.empty()) return {};
    return {BP_REFUSED_DESCRIPTOR, fmt::format("{}: {}", file, complaint_)};
  }

 private:
  void complaint(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
  }
  std::string complaint_;
};

Refusal take_tables(PluginTables& t, std::string_view file) {
  Tables tables;
  bp_plugin_t& p = t.plugin;
  tables.copy(p.device, t.device, "device", true);
  tables.copy(p.coverage, t.coverage, "coverage", true);
  tables.copy(p.program, t.program, "program", true);
  tables.copy(p.instance, t.instance, "instance", true);
  tables.copy(p.memory, t.memory, "memory", false);
  tables.copy(p.sync, t.sync, "sync", false);
  tables.copy(p.cache, t.cache, "cache", false);
  tables.copy(p.weights, t.weights, "weights", false);
  tables.require(p.create, "create");
  tables.require(p.destroy, "destroy");
  tables.require(t.device.count, "device.count");
  tables.require(t.device.info, "device.info");
  tables.require(t.device.open, "device.open");
  tables.require(t.device.close, "device.close");
  tables.require(t.coverage.query, "coverage.query");
  tables.require(t.program.compile, "program.compile");
  tables.require(t.program.destroy, "program.destroy");
  tables.require(t.program.info, "program.info");
  tables.require(t.instance.create, "instance.create");
  tables.require(t.instance.destroy, "instance.destroy");
  tables.require(t.instance.bind, "instance.bind");
  tables.require(t.instance.run, "instance.run");
  return tables.refusal(file);
}

}  // namespace

Refusal negotiate(bp_plugin_query_t query, std::string_view file, std::string_view expected_id, PluginTables& out) {
  const bp_host_offer_t offer = make_offer();
  const bp_plugin_t* given = nullptr;
  PluginError thrown;
  if (call_plugin(thrown, [&] { return given = query(&offer), BP_OK; }) != BP_OK)
    return {BP_REFUSED_DESCRIPTOR, fmt::format("{}: {}: {}", file, BP_PLUGIN_SYMBOL, thrown.text())};
  return negotiate(given, file, expected_id, out);
}

Refusal negotiate(const bp_plugin_t* given, std::string_view file, std::string_view expected_id, PluginTables& out) {
  if (!given)
    return {BP_REFUSED_DESCRIPTOR, fmt::format("{}: {} returned NULL instead of a descriptor", file, BP_PLUGIN_SYMBOL)};
  auto known = abi::read(given, "bp_plugin_t");
  if (!known.ok()) return {BP_REFUSED_DESCRIPTOR, fmt::format("{}: {}", file, known.status().text())};
  out.plugin = *known;
  if (Refusal refusal = check_agreement(out.plugin, make_offer(), file)) return refusal;
  if (Refusal refusal = check_id(out.plugin, file, expected_id)) return refusal;
  return take_tables(out, file);
}

}  // namespace backplane
