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
  // Adds the files that the process has mapped at this moment, as seen from outside; for a process that hides its
  // mappings, an unreadable file is noted. [thread-safe]
  void note(pid_t process);
  // By path; the harness's own program is left out.
  std::vector<LoadedFile> hashed() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

// The files that a vendor delivers: those below the folder of the plugin, which is identified by its digest, with
// relative paths. Empty if the plugin is not among them.
std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin_sha256);

}  // namespace backplane::conform
