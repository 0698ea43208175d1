// SPDX-License-Identifier: Apache-2.0
// The files that a plugin loaded into its process: itself, its libraries, other mapped files.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace backplane::conform {

struct LoadedFile {
  std::string path, sha256;  // of the file as it is now; empty if it cannot be read

  bool operator==(const LoadedFile&) const = default;
};

class LoadedFiles {
 public:
  // Adds the files that the process has mapped at this moment, as seen from outside. A process that hides its mappings
  // counts as one file that cannot be read. [thread-safe]
  void note(pid_t process);
  // Sorted by path, without the harness's own program.
  std::vector<LoadedFile> hashed() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

// The files that a vendor delivers: those below the folder of the plugin, which its digest identifies, with relative
// paths. Empty if no file has that digest.
std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin_sha256);

}  // namespace backplane::conform
