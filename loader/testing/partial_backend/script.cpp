// SPDX-License-Identifier: Apache-2.0
#include "partial_backend/script.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "backplane/sdk/fence.hpp"

namespace backplane::partial {
namespace {

using sdk::Error;

// Default options that are built into a variant of the plugin, such as "async=1 memory=own ".
#ifndef PARTIAL_DEFAULTS
#define PARTIAL_DEFAULTS ""
#endif
std::optional<std::string> by_default(std::string_view name) {
  const std::string_view all = " " PARTIAL_DEFAULTS;
  const std::string key = " " + std::string(name) + "=";
  const size_t begin = all.find(key);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view value = all.substr(begin + key.size());
  return std::string(value.substr(0, value.find(' ')));
}

std::optional<std::string> option(const bp_host_t* host, std::string_view name) {
  bp_text_t value{};
  if (host->option(host, {name.data(), name.size()}, &value) != BP_OK) return by_default(name);
  return std::string(value.data, value.size);
}

uint64_t number(std::string_view name, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(BP_INVALID_ARGUMENT,
                "option partial." + std::string(name) + " is '" + std::string(text) + "': it must be a number");
  return value;
}

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) items.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

// Looks up the options of a device. Options for one device take precedence over options for all devices.
struct Reader {
  const bp_host_t* host;
  uint32_t device;

  std::optional<std::string> text(const std::string& name) const {
    if (auto own = option(host, std::to_string(device) + "." + name)) return own;
    return option(host, name);
  }
  void read(const std::string& name, uint64_t& out) const {
    if (auto given = text(name)) out = number(name, *given);
  }
  void read(const std::string& name, std::vector<std::string>& out) const {
    if (auto given = text(name)) out = list(*given);
  }
  void read(const std::string& name, bool& out) const {
    if (auto given = text(name)) out = *given == "1";
  }
  void read(const std::string& name, std::string& out) const {
    if (auto given = text(name)) out = *given;
  }
};

Memory memory(std::string_view name) {
  if (name == "host") return Memory::kHost;
  if (name == "own") return Memory::kOwn;
  if (name == "shared") return Memory::kShared;
  if (name == "flushed") return Memory::kFlushed;
  throw Error(BP_INVALID_ARGUMENT,
              "option partial.memory is '" + std::string(name) + "': it must be host, own, shared or flushed");
}

Fault fault(std::string_view text) {
  const size_t at = text.find('@'), hash = text.rfind('#');
  if (at == text.npos || hash == text.npos || hash < at)
    throw Error(BP_INVALID_ARGUMENT, "option partial.fault is '" + std::string(text) + "': it must be KIND@NODE#N");
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 1, hash - at - 1)),
          number("fault", text.substr(hash + 1))};
}

}  // namespace

uint64_t draw(uint64_t seed, uint64_t id) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + id + 1;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool Script::claims(std::string_view op, uint64_t node_id) const {
  return contains(ops, op) != claims_all && draw(mask_seed, node_id) % 100 < mask_percent;
}

std::optional<double> Script::cost(uint64_t node_id) const {
  if (cost_seed) return 1e-6 * static_cast<double>(1 + draw(*cost_seed, node_id) % 1000);
  return seconds;
}

uint64_t read_devices(const bp_host_t* host) {
  const auto given = option(host, "devices");
  return given ? number("devices", *given) : 1;
}

Script read_script(const bp_host_t* host, uint32_t device) {
  const Reader reader{host, device};
  Script script;
  if (const auto ops = reader.text("ops"); ops && *ops != "*") {
    script.claims_all = ops->starts_with('!');
    script.ops = list(script.claims_all ? std::string_view(*ops).substr(1) : std::string_view(*ops));
  }
  if (const auto mask = reader.text("mask")) {
    const size_t colon = mask->find(':');
    script.mask_seed = number("mask", std::string_view(*mask).substr(0, colon));
    script.mask_percent = number("mask", colon == mask->npos ? "" : std::string_view(*mask).substr(colon + 1));
  }
  if (const auto seconds = reader.text("seconds")) {
    if (seconds->starts_with("random:"))
      script.cost_seed = number("seconds", std::string_view(*seconds).substr(7));
    else
      script.seconds = std::strtod(seconds->c_str(), nullptr);
  }
  script.refuses_unaligned = reader.text("align").has_value();
  reader.read("align", script.align);
  uint64_t kind = script.kind;
  reader.read("reject", script.reject);
  reader.read("split", script.split);
  reader.read("max_nodes", script.max_nodes);
  reader.read("kind", kind);
  reader.read("resplit", script.resplit);
  reader.read("groups", script.groups);
  reader.read("peers", script.peers);
  reader.read("scratch", script.scratch);
  reader.read("forgets", script.forgets);
  reader.read("async", script.async);
  reader.read("marks", script.marks);
  reader.read("mark_files", script.mark_files);
  reader.read("copy_meets", script.copy_meets);
  reader.read("touches", script.touches);
  reader.read("open_us", script.open_us);
  reader.read("run_us", script.run_us);
  reader.read("meet", script.meet);
  reader.read("copy_us", script.copy_us);
  reader.read("compile_us", script.compile_us);
  reader.read("held", script.held);
  reader.read("hang_copy", script.hang_copy);
  reader.read("cache", script.cache);
  reader.read("stamp", script.stamp);
  reader.read("parses", script.parses);
  reader.read("pool", script.pool);
  reader.read("uuid", script.uuid);
  if (script.uuid.size() > sizeof bp_device_info_t::uuid)
    throw Error(BP_INVALID_ARGUMENT, "option partial.uuid is longer than 16 letters");
  script.kind = static_cast<uint32_t>(kind);
  if (const auto bytes = reader.text("bytes")) script.bytes = number("bytes", *bytes);
  if (const auto name = reader.text("memory")) script.memory = memory(*name);
  if (const auto text = reader.text("fault")) script.fault = fault(*text);
  return script;
}

}  // namespace backplane::partial
