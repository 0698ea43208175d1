// SPDX-License-Identifier: Apache-2.0
// The files that a plugin maps into its process: the plugin itself, its libraries, other data.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace backplane::conform {

// The size in bytes of the largest file, such as one of weights, that is hashed because a plugin maps it. A larger one
// counts as a file that cannot be read.
inline constexpr uint64_t kMaxMapped = uint64_t{64} << 30;
// The most files that a commitment or a statement lists.
inline constexpr size_t kMaxListedFiles = 5000;

struct LoadedFile {
  std::string path, sha256;  // SHA-256 of the file when hashed() read it; empty if it could not be read

  bool operator==(const LoadedFile&) const = default;
};

class LoadedFiles {
 public:
  // Adds the files that the process maps at this moment, read from /proc: at most 4096 in all calls together. Files
  // beyond that number count as one file that cannot be read, and so does a process that hides its mappings.
  // [thread-safe]
  void note(pid_t process);
  // All files added, except the harness's own program, sorted by path.
  std::vector<LoadedFile> hashed() const;
  // Throws std::runtime_error if one of the files contains code and cannot be read, such as a library that the plugin
  // removed after it had loaded it.
  void require_code(const std::vector<LoadedFile>& files) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
  std::set<std::string> code_;  // those that are mapped to be executed
};

// The files that a vendor delivers: those below the plugin's folder, with paths relative to it. The plugin is found by
// its digest; the result is empty if no file has that digest.
std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin_sha256);

}  // namespace backplane::conform
