// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys and what is signed with them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace backplane::conform {

// A private key and its owner. The file is JSON, for its owner's eyes alone.
struct Key {
  std::string owner;
  std::string public_hex, secret_hex;
};

Key make_key(const std::string& owner);
// `folder`/NAME.key, which its owner alone may read, and, to give away, `folder`/NAME.pub. Throws std::runtime_error,
// also where one of them exists.
void write_key(const Key& key, const std::filesystem::path& folder, const std::string& name);
// These throw std::runtime_error; a private key's file that others may read is refused.
Key read_key(const std::filesystem::path& file);
std::string read_public_key(const std::filesystem::path& file);  // in hexadecimal

// Who answers for what: the SHA-256 of each file. Its text has one form, so that no byte of it can change unnoticed.
struct Signature {
  std::string role, owner, public_hex;
  std::map<std::string, std::string> over;
  std::string signature_hex;
};
std::string sign(const Key& key, const std::string& role, const std::map<std::string, std::string>& over);
// Throws std::runtime_error with one line: no signature, not in the one form, or not of this key.
Signature read_signature(const std::string& text);

}  // namespace backplane::conform
