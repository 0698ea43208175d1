// SPDX-License-Identifier: Apache-2.0
// Hashes of keys that a model chooses, for std::unordered_map and std::unordered_set. The secret is private to the
// process, so no model can have many keys with the same hash, which would turn each look-up into a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace backplane::cpu {

struct KeyedHash {
  size_t operator()(std::string_view bytes) const;
  size_t operator()(int64_t number) const;
};

}  // namespace backplane::cpu
