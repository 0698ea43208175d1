// SPDX-License-Identifier: Apache-2.0
#include "journal/case_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace backplane::conform {

uint64_t hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const char* const slash = std::find(text.data(), end, '/');
  // Unlike sscanf, from_chars takes neither signs nor spaces, nor numbers that 32 bits do not hold.
  const auto reads = [](const char* begin, const char* last, uint32_t& out_number) {
    const auto [stopped, error] = std::from_chars(begin, last, out_number);
    return error == std::errc() && stopped == last;
  };
  if (slash == end || !reads(text.data(), slash, shard.index) || !reads(slash + 1, end, shard.count) ||
      shard.index < 1 || shard.index > shard.count)
    throw Usage(fmt::format("--shard is '{}': it must be i/n with i from 1 to n", text));
  return shard;
}

bool is_in(std::string_view case_name, Shard shard) {
  return hash(case_name) % shard.count == shard.index - 1;
}

}  // namespace backplane::conform
