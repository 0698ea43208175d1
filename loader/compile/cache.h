// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk. An entry is whole or absent, whoever writes at the same time and whenever a process dies;
// what damages it later shows in its checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "ir/hash.h"
#include "view/view.h"

namespace backplane {

// Everything that a program depends on: plugin, device, driver, graph with its weights, options.
Result<std::string> cache_key(const Device& device, const model::View& island, const bp_compile_t& what);

class ProgramCache {
 public:
  // No folder: nothing is kept.
  explicit ProgramCache(const CacheSettings& settings) : folder_(settings.folder), limit_(settings.bytes) {}

  bool is_on() const { return !folder_.empty(); }
  // Whether there is a whole entry; `problem` tells of one that is not. What was read is latest used.
  bool read(const std::string& key, std::vector<char>& out_blob, std::string& problem) const;
  // Makes room for it where the cache is full. False: it could not be written, or is too large.
  bool write(const std::string& key, std::string_view blob) const;
  void remove(const std::string& key) const;

 private:
  std::filesystem::path path_of(const std::string& key) const { return folder_ / (key + ".program"); }
  void evict() const;

  std::filesystem::path folder_;
  uint64_t limit_;
};

}  // namespace backplane
