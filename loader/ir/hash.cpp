// SPDX-License-Identifier: Apache-2.0
#include "ir/hash.h"

#include <cstring>

namespace backplane::model {
namespace {

// Odd constants: the first 64 fractional bits of √2 (plus one), √3, √5 and √7.
constexpr uint64_t kKeys[4] = {0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1};

__extension__ using Wide = unsigned __int128;

// The XOR of the high and low 64 bits of the product, so that all bits of the factors affect the low bits too.
uint64_t mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

// Each of four lanes (hash states) multiplies 8 of every 32 bytes and adds the next lane's 8. The lanes do not depend
// on each other, so their multiplications overlap.
Hash hash_bytes(const void* data, uint64_t size, uint64_t seed) {
  const char* at = static_cast<const char*>(data);
  uint64_t lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = mix(seed ^ kKeys[i], size + kKeys[3 - i]);
  uint64_t left = size;
  while (left > 0) {
    uint64_t block[4] = {};
    const uint64_t taken = left < sizeof block ? left : sizeof block;
    std::memcpy(block, at, taken);
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i] ^ block[i], kKeys[i]) + block[(i + 1) & 3];
    at += taken;
    left -= taken;
  }
  const uint64_t low = mix(lanes[0] ^ kKeys[1], lanes[1] ^ kKeys[2]);
  const uint64_t high = mix(lanes[2] ^ kKeys[3], lanes[3] ^ kKeys[0]);
  return {mix(low ^ size, high ^ kKeys[0]), mix(low + kKeys[2], high + size)};
}

Hash WeightHashes::of(const Weight& weight) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(weight.id); found != known_.end()) return found->second;
  }
  std::vector<int64_t> shape = weight.dims;
  shape.push_back(weight.dtype);
  const Hash head = hash_bytes(shape.data(), shape.size() * sizeof(int64_t), 0);
  const Hash hash = hash_bytes(weight.data, weight.bytes, head[0] ^ head[1]);
  const std::lock_guard lock(mutex_);
  return known_.emplace(weight.id, hash).first->second;
}

}  // namespace backplane::model
