// SPDX-License-Identifier: Apache-2.0
// The keys that a verifier trusts. README.md describes the files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace backplane::conform {

struct TrustedKey {
  std::string public_hex, owner;
  std::vector<std::string> roles;  // vendor, lab, certifier
  std::string from, to;            // days, both included
  std::string revoked;             // the day of revocation, which invalidates all its signatures; empty: not revoked
};

// What the store says about a key.
struct KeyStatus {
  std::string owner;  // the name in the store; empty: the key is unknown
  std::string fault;  // why it does not count, in one line; empty: it does
  bool counts() const { return fault.empty(); }
};

class Trust {
 public:
  Trust() = default;  // knows no key
  // A file, or all *.json of a folder. Throws std::runtime_error, which names the file.
  static Trust read(const std::filesystem::path& path);
  void add(TrustedKey key) { keys_.push_back(std::move(key)); }

  // The status of a key for a role on `day`, the verifier's date ("2026-11-20").
  KeyStatus of(const std::string& public_hex, const std::string& role, const std::string& day) const;

 private:
  std::vector<TrustedKey> keys_;
};

}  // namespace backplane::conform
