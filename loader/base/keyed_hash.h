// SPDX-License-Identifier: Apache-2.0
// Hashes of names from files. The key is private to the process, so no file can be written to have many names with the
// same hash, which would turn every look-up into a search.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane {

// Hashes under this process's random key.
uint64_t keyed_hash(std::string_view bytes);

// For std::unordered_map and std::unordered_set.
struct KeyedHash {
  size_t operator()(std::string_view bytes) const { return keyed_hash(bytes); }
};

}  // namespace backplane
