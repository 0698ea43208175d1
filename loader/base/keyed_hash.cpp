// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <sodium.h>

#include <array>
#include <cstring>
#include <random>

namespace backplane {
namespace {

std::array<unsigned char, crypto_shorthash_KEYBYTES> random_key() {
  std::array<unsigned char, crypto_shorthash_KEYBYTES> key;
  std::random_device random;
  for (size_t at = 0; at < key.size(); at += sizeof(uint32_t)) {
    const uint32_t word = random();
    std::memcpy(key.data() + at, &word, sizeof word);
  }
  return key;
}

}  // namespace

uint64_t keyed_hash(std::string_view bytes) {
  static const auto kKey = random_key();
  unsigned char hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), kKey.data());
  uint64_t number;
  static_assert(sizeof number == sizeof hash);
  std::memcpy(&number, hash, sizeof number);
  return number;
}

}  // namespace backplane
