// SPDX-License-Identifier: Apache-2.0
// Names of cases, the limit on globs that match them, and the shards to which they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/usage.h"

namespace backplane::conform {

using cli::Usage;

// The largest glob that names are matched with, in bytes: a bundle's glob is untrusted, and each byte costs time for
// each case.
inline constexpr size_t kMaxGlob = 1000;

// FNV-1a. The result is the same on every machine.
uint64_t hash(std::string_view text);

// One part of a run that is spread over several machines. The hash of a case's name decides which shard has the case.
struct Shard {
  uint32_t index = 1;  // from 1
  uint32_t count = 1;
};
// Parses "i/n". Throws Usage if the text is invalid.
Shard parse_shard(const std::string& text);
bool is_in(std::string_view case_name, Shard shard);

}  // namespace backplane::conform
