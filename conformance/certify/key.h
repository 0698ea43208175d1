// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys and signatures.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace backplane::conform {

// A private key and its owner. The file is JSON, readable by its owner only.
struct Key {
  std::string owner;
  std::string public_hex, secret_hex;
};

Key make_key(const std::string& owner);
// Writes `folder`/NAME.key, readable by its owner only, and `folder`/NAME.pub, to be published. Throws
// std::runtime_error if they cannot be written or one of them exists.
void write_key(const Key& key, const std::filesystem::path& folder, const std::string& name);
// These throw std::runtime_error; a private key's file that others may read is refused.
Key read_key(const std::filesystem::path& file);
std::string read_public_key(const std::filesystem::path& file);  // in hexadecimal

// Signer, role, and the SHA-256 of each file. The text is canonical, so that every changed byte is detected.
struct Signature {
  std::string role, owner, public_hex;
  std::map<std::string, std::string> over;
  std::string signature_hex;
};
std::string sign(const Key& key, const std::string& role, const std::map<std::string, std::string>& over);
// Throws std::runtime_error with one line: not a signature, not canonical, or not of this key.
Signature read_signature(const std::string& text);

}  // namespace backplane::conform
