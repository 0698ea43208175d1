// SPDX-License-Identifier: Apache-2.0
#include "runtime/keyed_hash.h"

#include <cstring>
#include <random>

namespace backplane::cpu {
namespace {

__extension__ using Wide = unsigned __int128;

struct Secret {
  uint64_t first, second;
};

const Secret& secret() {
  static const Secret kSecret = [] {
    std::random_device random;
    const auto word = [&] { return uint64_t{random()} << 32 | random() | 1; };
    return Secret{word(), word()};
  }();
  return kSecret;
}

// XORs the high and the low 64 bits of the product, so that high bits of the factors affect low bits of the result too.
uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

size_t KeyedHash::operator()(int64_t number) const {
  const Secret& by = secret();
  return fold(fold(static_cast<uint64_t>(number) ^ by.first, by.second) ^ by.first, by.second);
}

size_t KeyedHash::operator()(std::string_view bytes) const {
  const Secret& by = secret();
  uint64_t hash = by.first ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t size = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), size);
    bytes.remove_prefix(size);
    hash = fold(hash ^ word, by.second);
  }
  return fold(hash ^ by.first, by.second);
}

}  // namespace backplane::cpu
