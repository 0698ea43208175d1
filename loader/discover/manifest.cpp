// SPDX-License-Identifier: Apache-2.0
#include "discover/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "backplane/version.h"
#include "discover/file.h"

namespace backplane {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 16;

struct Broken {
  std::string text;
};

const Json& require(const Json& object, const char* key, const char* expected) {
  const auto found = object.find(key);
  if (found == object.end()) throw Broken{fmt::format("key \"{}\" is missing: expected {}", key, expected)};
  return *found;
}

// A value as it is quoted in errors.
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

uint32_t version_of(const Json& abi, const char* key) {
  constexpr const char* kExpected = "a version such as \"1.0\"";
  const std::string name = fmt::format("abi.{}", key);
  const auto found = abi.find(key);
  if (found == abi.end()) throw Broken{fmt::format("key \"{}\" is missing: expected {}", name, kExpected)};
  const std::string text = text_of(*found, name.c_str(), kExpected);
  uint16_t major = 0, minor = 0;
  const char* end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') wrong(name.c_str(), *found, kExpected);
  auto [last, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc() || last != end) wrong(name.c_str(), *found, kExpected);
  return BP_MAKE_VERSION(major, minor);
}

Json parse(std::string_view text) {
  bool too_deep = false;
  auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMaxDepth;
    return !too_deep;
  };
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), keep);
  } catch (const Json::exception& e) {
    const std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    const size_t prefix = what.find("] ");
    throw Broken{"is no JSON: " + std::string(prefix == what.npos ? what : what.substr(prefix + 2))};
  }
  if (too_deep) throw Broken{fmt::format("nests deeper than {} levels", kMaxDepth)};
  return json;
}

void interpret(const Json& json, const std::filesystem::path& file, const Log& log, Manifest& out) {
  if (!json.is_object()) throw Broken{"is no JSON object"};
  const Json& format = require(json, "manifest", "the number 1");
  if (!format.is_number_integer() || format != 1)
    wrong("manifest", format, "the number 1, the only format this loader knows");

  constexpr const char* kId = "1 to 32 characters of a-z, 0-9 and _";
  out.id = text_of(require(json, "id", kId), "id", kId);
  if (!legal_backend_id(out.id)) wrong("id", out.id, kId);

  constexpr const char* kLibrary = "a path, relative to the manifest or absolute";
  const std::string library = text_of(require(json, "library", kLibrary), "library", kLibrary);
  if (library.empty() || library.find('\0') != library.npos) wrong("library", library, kLibrary);
  out.library = (file.parent_path() / library).lexically_normal();

  constexpr const char* kAbi = "an object {\"min\": \"1.0\", \"max\": \"1.0\"}";
  const Json& abi = require(json, "abi", kAbi);
  if (!abi.is_object()) wrong("abi", abi, kAbi);
  out.version_min = version_of(abi, "min");
  out.version_max = version_of(abi, "max");
  if (out.version_min > out.version_max) wrong("abi", abi, "min not above max");

  if (const auto name = json.find("name"); name != json.end()) out.name = text_of(*name, "name", "a text");
  if (const auto isolation = json.find("isolation"); isolation != json.end()) {
    const std::string value = text_of(*isolation, "isolation", "\"none\" or \"process\"");
    if (value != "none" && value != "process") wrong("isolation", *isolation, "\"none\" or \"process\"");
    out.isolated = value == "process";
  }

  constexpr std::string_view kKnown[] = {"manifest", "id", "name", "library", "abi", "isolation"};
  for (const auto& [key, value] : json.items())
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown))
      log.debug(fmt::format("manifest {}: key {} is not known and ignored", file.string(), shown(key)));
}

}  // namespace

bool legal_backend_id(std::string_view id) {
  return !id.empty() && id.size() <= 32 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Refusal parse_manifest(std::string_view json, const std::filesystem::path& file, const Log& log, Manifest& out) {
  if (json.size() > kMaxBytes)
    return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: is larger than {} bytes", file.string(), kMaxBytes)};
  try {
    interpret(parse(json), file, log, out);
    return {};
  } catch (const Broken& broken) {
    return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: {}", file.string(), broken.text)};
  }
}

Refusal read_manifest(const std::filesystem::path& file, const Log& log, Manifest& out) {
  File opened;
  if (Refusal refusal = opened.open(file)) return refusal;
  if (!opened.regular()) return {BP_REFUSED_MANIFEST, fmt::format("manifest {}: is no regular file", file.string())};
  std::string text(static_cast<size_t>(std::min<uint64_t>(opened.size(), kMaxBytes + 1)), '\0');
  text.resize(opened.read(0, text.data(), text.size()));
  return parse_manifest(text, file, log, out);
}

}  // namespace backplane
