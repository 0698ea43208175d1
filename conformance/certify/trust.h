// SPDX-License-Identifier: Apache-2.0
// The keys that a verifier trusts. docs/guides/certifier.md describes the files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace backplane::conform {

struct TrustedKey {
  std::string public_hex, owner;
  std::vector<std::string> roles;  // vendor, lab, certifier
  std::string from, to;            // days, inclusive
  std::string revoked;  // the day of revocation, which invalidates all signatures of the key; empty if not revoked
};

// The status of a key according to the trusted keys.
struct KeyStatus {
  std::string owner;  // the owner's name in the trust file; empty if the key is unknown
  std::string fault;  // why the key does not count, in one line; empty if it counts
  bool counts() const { return fault.empty(); }
};

class Trust {
 public:
  Trust() = default;  // trusts no key
  // Reads one file, or all *.json files of a folder. Throws std::runtime_error with the name of the file at fault.
  static Trust read(const std::filesystem::path& path);
  void add(TrustedKey key) { keys_.push_back(std::move(key)); }

  // The status of a key in a role on `day`, the date of verification ("2026-11-20").
  KeyStatus of(const std::string& public_hex, const std::string& role, const std::string& day) const;

 private:
  std::vector<TrustedKey> keys_;
};

}  // namespace backplane::conform
