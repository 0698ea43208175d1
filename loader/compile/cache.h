// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk. An entry is complete or absent, even with concurrent writers or a killed process. Later
// corruption is detected by a checksum.
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

// A digest of everything that the program depends on: plugin, kind of device, driver, graph with its weights, options,
// allowed compute types, and whether weights may be refitted. 32 hexadecimal digits.
Result<std::string> cache_key(const Device& device, const model::View& island, const bp_compile_t& what);

class ProgramCache {
 public:
  // If the settings have no folder, the cache is off: callers check is_on() before they use the other functions.
  explicit ProgramCache(const CacheSettings& settings) : folder_(settings.folder), limit_(settings.bytes) {}

  bool is_on() const { return !folder_.empty(); }
  // Returns whether there is a valid entry, and marks it as the most recently used. Sets `problem` to a description of
  // an entry that is invalid, which is removed, or of an entry or folder that other users can write to (writers.h).
  bool read(const std::string& key, std::vector<char>& out_blob, std::string& problem) const;
  // Removes the least recently used entries if the cache is full. Returns false if `blob` is too large or cannot be
  // written, or if other users can write to the folder.
  bool write(const std::string& key, std::string_view blob) const;
  void remove(const std::string& key) const;

 private:
  std::filesystem::path path_of(const std::string& key) const { return folder_ / (key + ".program"); }
  void evict() const;

  std::filesystem::path folder_;
  uint64_t limit_;
};

}  // namespace backplane
