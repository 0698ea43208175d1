// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace backplane {
namespace {

struct Key {
  uint64_t low, high;
};

Key random_key() {
  std::random_device random;
  const auto number = [&] { return uint64_t{random()} << 32 | random(); };
  return {number(), number()};
}

}  // namespace

// SipHash-1-3 (Aumasson and Bernstein, 2012): one round a word, three at the end, as hash tables of several languages
// use it.
uint64_t keyed_hash(std::string_view bytes) {
  static const Key kKey = random_key();
  uint64_t a = kKey.low ^ 0x736f6d6570736575, b = kKey.high ^ 0x646f72616e646f6d;
  uint64_t c = kKey.low ^ 0x6c7967656e657261, d = kKey.high ^ 0x7465646279746573;
  const auto round = [&] {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32) + d;
    c += b;
    d = std::rotl(d, 21) ^ a;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  };
  const auto take = [&](uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  };
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    take(word);
  }
  uint64_t last = uint64_t{bytes.size()} << 56;
  if (left > 0 && bytes.size() >= 8) {  // the end of the last eight bytes
    uint64_t word;
    std::memcpy(&word, at + left - 8, 8);
    last |= word >> (64 - 8 * left);
  } else {
    for (size_t i = 0; i < left; ++i) last |= uint64_t{static_cast<unsigned char>(at[i])} << 8 * i;
  }
  take(last);
  c ^= 0xff;
  for (int i = 0; i < 3; ++i) round();
  return a ^ b ^ c ^ d;
}

}  // namespace backplane
