// SPDX-License-Identifier: Apache-2.0
#include "certify/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "journal/digest.h"
#include "journal/header.h"
#include "journal/record.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxTrustFile = 1 << 20;
constexpr size_t kMaxKeyFiles = 1000;
constexpr const char* kRoles[] = {"vendor", "lab", "certifier"};

std::string day_of(const Json& entry, const char* key) {
  const std::string day = entry.at(key);
  if (!is_day(day)) throw std::runtime_error(fmt::format("'{}' is '{}', not a valid date (YYYY-MM-DD)", key, day));
  return day;
}

TrustedKey key_of(const Json& entry) {
  for (const auto& [key, value] : entry.items()) {
    constexpr std::string_view kKnown[] = {"public_key", "owner", "roles", "from", "to", "revoked"};
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      throw std::runtime_error(fmt::format("the entry has the unknown field '{}'", key));
  }
  TrustedKey key = {.public_hex = entry.at("public_key"),
                    .owner = entry.at("owner"),
                    .roles = entry.at("roles"),
                    .from = day_of(entry, "from"),
                    .to = day_of(entry, "to"),
                    .revoked = entry.contains("revoked") ? day_of(entry, "revoked") : ""};
  if (key.public_hex.size() != 64 || key.public_hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::runtime_error(
        fmt::format("'public_key' is '{}', not 64 hexadecimal digits in lower case", key.public_hex));
  if (key.owner.empty()) throw std::runtime_error("'owner' is empty");
  for (const std::string& role : key.roles) {
    if (std::ranges::find(kRoles, role) == std::end(kRoles))
      throw std::runtime_error(fmt::format("the role '{}' is not one of vendor, lab, certifier", role));
  }
  return key;
}

// Throws if the file or folder is missing, or if it is world-writable, because then it cannot define trusted keys.
void check_writers(const fs::path& path) {
  const fs::file_status status = fs::status(path);
  if (!fs::exists(status)) throw std::runtime_error(fmt::format("'{}' does not exist", path.string()));
  if ((status.permissions() & fs::perms::others_write) != fs::perms::none)
    throw std::runtime_error(fmt::format("'{}' is world-writable; chmod o-w fixes that", path.string()));
}

void read_file_into(Trust& trust, const fs::path& file) {
  check_writers(file);
  try {
    const Json json = parse_record(read_file(file, kMaxTrustFile));
    if (json.at("trust") != 1)
      throw std::runtime_error(fmt::format("its trust version is {}, not 1", json.at("trust").dump()));
    for (const Json& entry : json.at("keys")) trust.add(key_of(entry));
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is not a file of trusted keys: {}", file.string(), error.what()));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("file of trusted keys '{}' cannot be used: {}", file.string(), error.what()));
  }
}

}  // namespace

Trust Trust::read(const fs::path& path) {
  Trust trust;
  if (!fs::is_directory(path)) {
    read_file_into(trust, path);
    return trust;
  }
  check_writers(path);
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
    if (files.size() > kMaxKeyFiles)
      throw std::runtime_error(fmt::format("'{}' has more than {} .json files", path.string(), kMaxKeyFiles));
  }
  for (const fs::path& file : files) read_file_into(trust, file);
  return trust;
}

// A key may have several entries. It is revoked if any entry revokes it; otherwise one valid entry is enough.
KeyStatus Trust::of(const std::string& public_hex, const std::string& role, const std::string& day) const {
  KeyStatus status = {.owner = "", .fault = "the key is unknown"};
  for (const TrustedKey& key : keys_) {
    if (key.public_hex != public_hex) continue;
    if (!key.revoked.empty()) return {key.owner, fmt::format("the key was revoked on {}", key.revoked)};
    if (status.owner.empty() || !status.counts()) {
      status.owner = key.owner;
      status.fault.clear();
      if (std::ranges::find(key.roles, role) == key.roles.end())
        status.fault = fmt::format("the key may not sign as '{}'", role);
      else if (day < key.from)
        status.fault = fmt::format("the key is valid from {} on", key.from);
      else if (day > key.to)
        status.fault = fmt::format("the key expired on {}", key.to);
    }
  }
  return status;
}

}  // namespace backplane::conform
