// SPDX-License-Identifier: Apache-2.0
// The files that a plugin brought into its process: itself, its libraries, what it maps.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace backplane::conform {

struct LoadedFile {
  std::string path, sha256;  // of what lies there now; empty where it cannot be read

  bool operator==(const LoadedFile&) const = default;
};

class LoadedFiles {
 public:
  // What the process has mapped at this moment, seen from outside. [thread-safe]
  void note(pid_t process);
  // By path; the harness's own program is left out.
  std::vector<LoadedFile> hashed() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

// Those below the folder of `plugin`, with their paths from there: what a vendor delivers.
std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin);

}  // namespace backplane::conform
