// SPDX-License-Identifier: Apache-2.0
#include "coverage/cost_profile.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/abi.h"
#include "base/dtype.h"
#include "discover/file.h"
#include "discover/writers.h"
#include "host/cache.h"
#include "ir/hash.h"

namespace backplane {
namespace {

constexpr std::string_view kFirstLine = "backplane profile 1";
constexpr uint64_t kMaxBytes = 64 << 20;
constexpr double kMaxSeconds = 3600;  // no node takes that long: a larger number is corrupt

// Replaces control characters by spaces, so that untrusted text stays on one line.
std::string line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < ' '; }, ' ');
  return out;
}

std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), value, std::chars_format::scientific, 6).ptr};
}

void add_type(const model::Graph& graph, model::ValueId id, std::string& out) {
  if (id == BP_NONE) {
    out += '-';
    return;
  }
  const model::Value& value = graph.values[id];
  if (value.weight != BP_NONE) out += "const ";
  if (value.type.kind != BP_KIND_TENSOR) out += "kind" + std::to_string(value.type.kind) + ' ';
  out += dtype_name(value.type.dtype);
  if (value.type.rank < 0) return;
  out += '[';
  for (size_t i = 0; i < value.type.dims.size(); ++i) {
    const bp_dim_t& dim = value.type.dims[i];
    out += (i ? "," : "") + std::string(dim.extent < 0 ? "?" : "") + std::to_string(expected_extent(graph, dim));
  }
  out += ']';
}

void add_attribute(const model::Graph& graph, const model::Attribute& attribute, std::string& out) {
  out += ' ' + attribute.name + '=';
  switch (attribute.type) {
    case BP_ATTR_INT:
    case BP_ATTR_INTS:
      for (int64_t i : attribute.ints()) out += std::to_string(i) + ',';
      break;
    case BP_ATTR_FLOAT:
    case BP_ATTR_FLOATS:
      for (float f : attribute.floats()) out += number(f) + ',';
      break;
    case BP_ATTR_STRING:
    case BP_ATTR_STRINGS:
      for (const std::string& s : attribute.strings()) out += s + ',';
      break;
    case BP_ATTR_TENSOR:
    case BP_ATTR_TENSORS:
      for (uint32_t index : attribute.indices()) {
        const model::Weight& weight = graph.weights[index];
        out += dtype_name(weight.dtype);
        for (int64_t extent : weight.dims) out += 'x' + std::to_string(extent);
      }
      break;
    default:
      break;
  }
}

}  // namespace

Profile Profile::of(const Device& device, const Host::Options& options) {
  const bp_device_info_t& info = device.info();
  const bp_plugin_t& plugin = *device.backend().plugin;
  Profile profile;
  profile.identity_ = device.name();
  for (const bp_text_t& text : {plugin.release, plugin.build_id, info.name, info.driver, info.arch})
    profile.identity_ += " | " + std::string(abi::view(text));
  profile.identity_ += " | threads " + std::to_string(device.backend().host->services().thread_count());
  for (const Host::Options* known : {&device.backend().host->options(), &options})
    for (const auto& [name, value] : *known) profile.identity_ += " | " + name + '=' + value;
  profile.identity_ = line(profile.identity_);
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return profile;
  const model::Hash hash = model::hash_bytes(profile.identity_.data(), profile.identity_.size(), 0);
  char digits[17] = {};
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash[0]));
  profile.path_ = folder / "profile" / (device.backend().id + '-' + digits);
  profile.read();
  return profile;
}

void Profile::read() {
  File file;
  if (file.open(path_) || !file.regular() || file.size() > kMaxBytes || check_writers(path_, file)) return;
  std::string content(file.size(), '\0');
  content.resize(file.read(0, content.data(), content.size()));
  std::string_view rest = content;
  const auto next = [&] {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    return text;
  };
  if (next() != kFirstLine || next() != identity_) return;
  while (!rest.empty()) {
    const std::string_view text = next();
    double seconds = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const size_t used = static_cast<size_t>(end - text.data());
    if (failed != std::errc() || !(seconds > 0 && seconds < kMaxSeconds)) continue;
    if (used + 1 >= text.size() || text[used] != '\t') continue;
    seconds_.insert_or_assign(std::string(text.substr(used + 1)), seconds);
  }
}

std::optional<double> Profile::find(std::string_view key) const {
  const auto found = seconds_.find(key);
  return found == seconds_.end() || key.empty() ? std::nullopt : std::optional(found->second);
}

void Profile::set(const std::string& key, double seconds) {
  seconds_[key] = fresh_[key] = seconds;
}

bool Profile::save() const {
  if (path_.empty()) return false;
  Profile now = *this;
  now.read();
  for (const auto& [key, seconds] : fresh_) now.seconds_[key] = seconds;
  std::string content = std::string(kFirstLine) + '\n' + identity_ + '\n';
  for (const auto& [key, seconds] : now.seconds_) content += number(seconds) + '\t' + key + '\n';
  return write_whole(path_, content);
}

int64_t expected_extent(const model::Graph& graph, const bp_dim_t& dim) {
  if (dim.extent >= 0) return dim.extent;
  return dim.symbol < graph.symbols.size() ? graph.symbols[dim.symbol].expected : model::kOpenExtent;
}

std::string profile_key(const model::Graph& graph, const model::Node& node, uint32_t compute_types) {
  std::string key = node.domain + "::" + node.op_type + '-' + std::to_string(node.since_version);
  if (compute_types) key += " compute " + std::to_string(compute_types);
  for (const model::Attribute& attribute : node.attributes) {
    if (attribute.type == BP_ATTR_GRAPH || attribute.type == BP_ATTR_GRAPHS) return {};
    add_attribute(graph, attribute, key);
  }
  for (const auto* operands : {&node.inputs, &node.outputs}) {
    key += operands == &node.inputs ? " (" : " -> (";
    for (size_t i = 0; i < operands->size(); ++i) {
      if (i) key += ", ";
      add_type(graph, (*operands)[i], key);
    }
    key += ')';
  }
  return line(key);
}

std::string profile_key_of_copy(std::string_view from, std::string_view to, uint64_t bytes) {
  return "copy of " + std::to_string(bytes) + " bytes from " + std::string(from) + " to " + std::string(to);
}

}  // namespace backplane
