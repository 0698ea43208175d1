// SPDX-License-Identifier: Apache-2.0
#include "journal/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

using Part = std::pair<std::string, Record>;

template <typename... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
  throw std::runtime_error(fmt::format(format, std::forward<Values>(values)...));
}

void check_headers(const std::vector<Part>& parts) {
  const auto& [first_name, first] = parts.front();
  std::map<uint32_t, std::string> shards;
  for (const auto& [name, part] : parts) {
    if (const std::string other = difference(first.header, part.header, true); !other.empty())
      refuse("'{}' and '{}' are from different runs: {}", first_name, name, other);
    const Shard shard = part.header.shard;
    const auto [before, is_new] = shards.emplace(shard.index, name);
    if (!is_new) refuse("shard {}/{} is duplicated: '{}' and '{}'", shard.index, shard.count, before->second, name);
  }
  for (uint32_t i = 1; i <= first.header.shard.count; ++i) {
    if (shards.count(i) == 0)
      refuse("shard {}/{} is missing: name the journals of all shards", i, first.header.shard.count);
  }
}

}  // namespace

Record merge(const std::vector<Part>& parts) {
  check_headers(parts);
  Record merged{.header = parts.front().second.header, .results = {}};
  const uint32_t shards = merged.header.shard.count;
  merged.header.shard = {};
  std::map<std::string, std::string> seen;  // for each case, the name of the part that contains it
  for (const auto& [name, part] : parts) {
    merged.header.started = std::min(merged.header.started, part.header.started);
    for (const Result& result : part.results) {
      merged.results.push_back(result);
      if (!is_of_list(result)) continue;
      const auto [before, is_new] = seen.emplace(result.name, name);
      if (!is_new) refuse("case {} is duplicated: in '{}' and '{}'", result.name, before->second, name);
      if (!is_in(result.name, part.header.shard))
        refuse("'{}' has case {}, which does not belong to its shard {}/{}", name, result.name, part.header.shard.index,
               shards);
    }
  }
  if (seen.size() < merged.header.cases) {
    refuse("{} of {} cases are missing: continue the unfinished shards with --resume",
           merged.header.cases - seen.size(), merged.header.cases);
  }
  std::vector<std::string> names;
  for (const auto& [name, part] : seen) names.push_back(name);
  if (const std::string list = sha256_of_list(names); list != merged.header.list)
    refuse("the cases are not those of the list {}: their SHA-256 is {}", merged.header.list, list);
  std::sort(merged.results.begin(), merged.results.end(),
            [](const Result& a, const Result& b) { return a.name < b.name; });
  return merged;
}

}  // namespace backplane::conform
