// SPDX-License-Identifier: Apache-2.0
#include "journal/digest.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>

namespace backplane::conform {

namespace {

std::string hex(const std::array<unsigned char, crypto_hash_sha256_BYTES>& hash) {
  std::string text;
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex(hash);
}

std::string sha256_of_file(const std::filesystem::path& file, uint64_t most) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  cli::read_pieces(file, most, [&](std::string_view piece) {
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
  });
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256_final(&state, hash.data());
  return hex(hash);
}

std::string sha256_of_list(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return sha256(text);
}

}  // namespace backplane::conform
