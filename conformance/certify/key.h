// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys and signatures.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace backplane::conform {

// A private key and its owner, stored in a JSON file that only the owner can read.
struct Key {
  std::string owner;
  std::string public_hex, secret_hex;
};

Key make_key(const std::string& owner);
// Writes `folder`/NAME.key, readable by its owner only, and `folder`/NAME.pub for publication. Throws
// std::runtime_error if a file exists or cannot be written.
void write_key(const Key& key, const std::filesystem::path& folder, const std::string& name);
// Both readers throw std::runtime_error if the file is invalid. read_key() also refuses a file that is not regular,
// belongs to another user or gives other users any permission.
Key read_key(const std::filesystem::path& file);
std::string read_public_key(const std::filesystem::path& file);  // in hexadecimal

// Who signed, in which role, and the SHA-256 of each signed file. The text of a signature is canonical, so every
// changed byte is detected.
struct Signature {
  std::string role, owner, public_hex;
  std::map<std::string, std::string> over;
  std::string signature_hex;
};
std::string sign(const Key& key, const std::string& role, const std::map<std::string, std::string>& over);
// Throws std::runtime_error with a one-line message if the text is not a canonical signature or does not match its key.
Signature read_signature(const std::string& text);

}  // namespace backplane::conform
