// SPDX-License-Identifier: Apache-2.0
#include "discover/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "backplane/version.h"
#include "discover/file.h"

namespace backplane {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxManifestBytes = 64 << 10;
constexpr int kMaxDepth = 16;
constexpr uint16_t kFormatMajor = 1;

struct Broken {
  std::string text;
};

const Json& require(const Json& object, const char* key, const char* expected) {
  const auto found = object.find(key);
  if (found == object.end()) throw Broken{fmt::format("key \"{}\" is missing: expected {}", key, expected)};
  return *found;
}

// A JSON value as text for errors, shortened to 60 characters.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

[[noreturn]] void wrong(const char* key, const Json& seen, const char* expected) {
  throw Broken{fmt::format("key \"{}\" is {}: expected {}", key, shown(seen), expected)};
}

std::string text_of(const Json& value, const char* key, const char* expected) {
  if (!value.is_string()) wrong(key, value, expected);
  return value.get<std::string>();
}

constexpr const char* kVersion = "a version such as \"1.0\"";

uint32_t version_of(const Json& value, const char* key) {
  const std::string text = text_of(value, key, kVersion);
  uint16_t major = 0, minor = 0;
  const char* end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') wrong(key, value, kVersion);
  auto [last, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc() || last != end) wrong(key, value, kVersion);
  return BP_MAKE_VERSION(major, minor);
}

uint32_t version_in(const Json& interface, const char* key) {
  const std::string name = fmt::format("interface.{}", key);
  const auto found = interface.find(key);
  if (found == interface.end()) throw Broken{fmt::format("key \"{}\" is missing: expected {}", name, kVersion)};
  return version_of(*found, name.c_str());
}

// Checks the nesting depth and finds keys that occur twice in one object. nlohmann-json would silently keep the last.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    too_deep_ |= depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.empty() && !keys_.back().insert(parsed.get<std::string>()).second &&
        twice_.empty())
      twice_ = shown(parsed);
    return !too_deep_;
  }
  void check() const {
    if (too_deep_) throw Broken{fmt::format("nests deeper than {} levels", kMaxDepth)};
    if (!twice_.empty()) throw Broken{fmt::format("key {} appears twice", twice_)};
  }

 private:
  bool too_deep_ = false;
  std::string twice_;
  std::vector<std::set<std::string>> keys_;  // of the enclosing objects, outermost first
};

// Empties a document from the leaves up. The destructor of nlohmann-json allocates memory for nested values, and
// terminates the process if allocation fails.
void empty(Json& json) {
  if (auto* const list = json.get_ptr<Json::array_t*>()) {
    for (Json& element : *list) empty(element);
    list->clear();
  } else if (auto* const object = json.get_ptr<Json::object_t*>()) {
    for (auto& [key, value] : *object) empty(value);
    object->clear();
  }
}

struct Document {
  Json json;
  ~Document() { empty(json); }
};

Json parse(std::string_view text) {
  // nlohmann-json would take a null character for the end of the text, and ignore the rest.
  if (const size_t null = text.find('\0'); null != text.npos)
    throw Broken{fmt::format("is not valid JSON: byte {} is a null character", null)};
  Watch watch;
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(),
                       [&](int depth, Json::parse_event_t event, Json& parsed) { return watch(depth, event, parsed); });
  } catch (const Json::exception& e) {
    const std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    const size_t prefix = what.find("] ");
    throw Broken{"is not valid JSON: " + std::string(prefix == what.npos ? what : what.substr(prefix + 2))};
  }
  watch.check();
  return json;
}

bool legal_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && std::ranges::all_of(label, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

void read_id(const Json& json, Manifest& out) {
  constexpr const char* kId =
      "a domain in reverse and the backend's id, such as \"com.acme.npu\": labels of a-z, 0-9, _ and -, the last one "
      "without -";
  const Json& value = require(json, "id", kId);
  out.full_id = text_of(value, "id", kId);
  const size_t last = out.full_id.rfind('.');
  if (last == out.full_id.npos || out.full_id.size() > 128) wrong("id", value, kId);
  out.backend_id = out.full_id.substr(last + 1);
  for (size_t begin = 0; begin <= last;) {
    const size_t end = out.full_id.find('.', begin);
    if (!legal_label(std::string_view(out.full_id).substr(begin, end - begin))) wrong("id", value, kId);
    begin = end + 1;
  }
  if (!legal_backend_id(out.backend_id)) wrong("id", value, kId);
}

std::string optional_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::string() : text_of(*found, key, "a string");
}

// Returns a string or a list of strings as a list. The list is empty if the key is absent.
std::vector<std::string> words_of(const Json& json, const char* key, const char* expected) {
  std::vector<std::string> words;
  const auto found = json.find(key);
  if (found == json.end()) return words;
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array() || found->empty() || found->size() > 16) wrong(key, *found, expected);
  for (const Json& word : *found) words.push_back(text_of(word, key, expected));
  return words;
}

int64_t integer_of(const Json& value, const char* key, int64_t low, int64_t high) {
  const std::string expected = fmt::format("a whole number from {} to {}", low, high);
  // get<int64_t> would wrap around for unsigned numbers above INT64_MAX.
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    wrong(key, value, expected.c_str());
  const auto number = value.get<int64_t>();
  if (number < low || number > high) wrong(key, value, expected.c_str());
  return number;
}

std::string hex_of(const Json& value, const char* key, size_t digits) {
  const std::string expected = fmt::format("{} hexadecimal digits in lower case", digits);
  const std::string text = text_of(value, key, expected.c_str());
  if (text.size() != digits || text.find_first_not_of("0123456789abcdef") != text.npos)
    wrong(key, value, expected.c_str());
  return text;
}

void read_opsets(const Json& json, Manifest& out) {
  const auto opsets = json.find("opsets");
  if (opsets == json.end()) return;
  constexpr const char* kOpsets = "an object {\"min\": 7, \"max\": 24}";
  if (!opsets->is_object() || !opsets->contains("min") || !opsets->contains("max")) wrong("opsets", *opsets, kOpsets);
  out.opset_min = static_cast<uint32_t>(integer_of(opsets->at("min"), "opsets.min", 1, 1'000'000));
  out.opset_max = static_cast<uint32_t>(integer_of(opsets->at("max"), "opsets.max", 1, 1'000'000));
  if (out.opset_min > out.opset_max) wrong("opsets", *opsets, "min not above max");
}

void read_kinds(const Json& json, Manifest& out) {
  constexpr const char* kKinds = "a list of cpu, gpu, npu, fpga and other";
  constexpr std::string_view kKnown[] = {"cpu", "gpu", "npu", "fpga", "other"};
  out.device_kinds = words_of(json, "device_kinds", kKinds);
  for (const std::string& kind : out.device_kinds)
    if (std::ranges::find(kKnown, kind) == std::end(kKnown)) wrong("device_kinds", json.at("device_kinds"), kKinds);
}

void read_trust(const Json& json, Manifest& out) {
  if (const auto sha256 = json.find("sha256"); sha256 != json.end()) out.sha256 = hex_of(*sha256, "sha256", 64);
  if (const auto conformance = json.find("conformance"); conformance != json.end()) {
    if (!conformance->is_object()) wrong("conformance", *conformance, "an object {\"level\": \"L2\", \"bundle\": …}");
    out.conformance_level = optional_text(*conformance, "level");
    out.conformance_bundle = optional_text(*conformance, "bundle");
  }
  const auto signature = json.find("signature");
  if (signature == json.end()) return;
  constexpr const char* kSignature = "an object {\"key\": …, \"value\": …}";
  if (!signature->is_object() || !signature->contains("key") || !signature->contains("value"))
    wrong("signature", *signature, kSignature);
  out.key = hex_of(signature->at("key"), "signature.key", 64);
  out.signature = hex_of(signature->at("value"), "signature.value", 128);
  Json rest = json;
  rest.erase("signature");
  out.signed_text = rest.dump();
}

void interpret(const Json& json, const std::filesystem::path& file, const Log& log, Manifest& out) {
  if (!json.is_object()) throw Broken{"is not a JSON object"};
  const Json& format = require(json, "format_version", "\"1.0\"");
  if (BP_VERSION_MAJOR(version_of(format, "format_version")) != kFormatMajor)
    wrong("format_version", format, "\"1.0\" or a later 1.x: install a newer loader for other versions");
  read_id(json, out);

  constexpr const char* kLibrary = "a path, relative to the manifest or absolute";
  const std::string library = text_of(require(json, "library", kLibrary), "library", kLibrary);
  if (library.empty() || library.find('\0') != library.npos) wrong("library", library, kLibrary);
  out.library = (file.parent_path() / library).lexically_normal();

  constexpr const char* kInterface = "an object {\"min\": \"1.0\", \"max\": \"1.0\"}";
  const Json& interface = require(json, "interface", kInterface);
  if (!interface.is_object()) wrong("interface", interface, kInterface);
  out.version_min = version_in(interface, "min");
  out.version_max = version_in(interface, "max");
  if (out.version_min > out.version_max) wrong("interface", interface, "min not above max");

  out.name = optional_text(json, "name");
  out.vendor = optional_text(json, "vendor");
  out.version = optional_text(json, "version");
  out.arch = words_of(json, "arch", "an architecture such as \"x86_64\", or a list of them");
  read_opsets(json, out);
  read_kinds(json, out);
  if (const auto priority = json.find("priority"); priority != json.end())
    out.priority = static_cast<int32_t>(integer_of(*priority, "priority", -1000, 1000));
  if (const auto isolation = json.find("isolation"); isolation != json.end()) {
    const std::string value = text_of(*isolation, "isolation", "\"none\" or \"process\"");
    if (value != "none" && value != "process") wrong("isolation", *isolation, "\"none\" or \"process\"");
    out.isolated = value == "process";
  }
  read_trust(json, out);

  constexpr std::string_view kKnown[] = {"format_version", "id",        "name",      "vendor",      "version",
                                         "library",        "arch",      "interface", "opsets",      "device_kinds",
                                         "priority",       "isolation", "sha256",    "conformance", "signature"};
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      log.debug(fmt::format("manifest {}: the unknown key {} is ignored", file.string(), shown(key)));
}

}  // namespace

bool legal_backend_id(std::string_view id) {
  return !id.empty() && id.size() <= 32 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Refusal parse_manifest(std::string_view json, const std::filesystem::path& file, const Log& log, Manifest& out) {
  if (json.empty()) {
    out.disables = true;
    return {};
  }
  if (json.size() > kMaxManifestBytes)
    return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: is larger than {} bytes", file.string(), kMaxManifestBytes)};
  try {
    const Document document{parse(json)};
    interpret(document.json, file, log, out);
    return {};
  } catch (const Broken& broken) {
    return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: {}", file.string(), broken.text)};
  }
}

Refusal read_manifest(const std::filesystem::path& file, const Log& log, Manifest& out, CheckedFolders* checked) {
  File opened;
  if (Refusal refusal = opened.open(file)) return refusal;
  if (Refusal refusal = check_writers(file, opened, checked)) return refusal;
  if (!opened.regular()) return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: is not a regular file", file.string())};
  std::string text(static_cast<size_t>(std::min<uint64_t>(opened.size(), kMaxManifestBytes + 1)), '\0');
  // Text that is missing must not look like an empty manifest, which disables others.
  if (opened.read(0, text.data(), text.size()) != text.size() || (text.empty() && !opened.is_empty()))
    return {BP_REFUSED_MISSING, fmt::format("manifest {}: it cannot be read completely", file.string())};
  return parse_manifest(text, file, log, out);
}

}  // namespace backplane
