// SPDX-License-Identifier: Apache-2.0
#include "certify/loaded.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 4096;

// A file on disk; devices, shared memory and anonymous mappings have no content to hash.
bool is_file(const std::string& path) {
  return path.starts_with('/') && !path.starts_with("/dev/") && !path.starts_with("/memfd:") &&
         !path.starts_with("/SYSV") && !path.starts_with("/anon_hugepage");
}

}  // namespace

void LoadedFiles::note(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  std::set<std::string> seen;
  for (std::string line; std::getline(maps, line) && seen.size() < kMaxFiles;) {
    // address perms offset device inode path
    size_t at = 0;
    for (int field = 0; field < 5 && at != std::string::npos; ++field) {
      at = line.find(' ', at);
      if (at != std::string::npos) at = line.find_first_not_of(' ', at);
    }
    if (at != std::string::npos && is_file(line.substr(at))) seen.insert(line.substr(at));
  }
  const std::lock_guard lock(mutex_);
  if (paths_.size() < kMaxFiles) paths_.merge(seen);
}

std::vector<LoadedFile> LoadedFiles::hashed() const {
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  const std::string own = fs::read_symlink("/proc/self/exe", ignored).string();
  std::vector<LoadedFile> files;
  for (const std::string& path : paths_) {
    if (path == own) continue;
    std::string digest;
    try {
      digest = sha256_of_file(path);
    } catch (const std::runtime_error&) {  // it was removed
    }
    files.push_back({path, std::move(digest)});
  }
  return files;
}

std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin) {
  std::error_code ignored;
  const std::string folder = fs::weakly_canonical(plugin, ignored).parent_path().string() + "/";
  std::vector<LoadedFile> found;
  for (const LoadedFile& file : files) {
    if (file.path.starts_with(folder)) found.push_back({file.path.substr(folder.size()), file.sha256});
  }
  return found;
}

}  // namespace backplane::conform
