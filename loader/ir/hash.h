// SPDX-License-Identifier: Apache-2.0
// 128-bit hashes of weights, each computed once. Different contents practically always have different hashes, but
// contents with the same hash can be made deliberately.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "ir/graph.h"

namespace backplane::model {

using Hash = std::array<uint64_t, 2>;

Hash hash_bytes(const void* data, uint64_t size, uint64_t seed);

// The hashes of one model's weights, by Weight::id. Thread-safe.
class WeightHashes {
 public:
  // The hash of the weight's data type, extents and bytes.
  Hash of(const Weight& weight);

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, Hash> known_;
};

}  // namespace backplane::model
