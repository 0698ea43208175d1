// SPDX-License-Identifier: Apache-2.0
#include "certify/loaded.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 4096;
const std::string kMoreFiles = "(more files than 4096)";

// True for files on disk. Devices, shared memory and anonymous mappings have no content to hash.
bool is_file(const std::string& path) {
  return path.starts_with('/') && !path.starts_with("/dev/") && !path.starts_with("/memfd:") &&
         !path.starts_with("/SYSV") && !path.starts_with("/anon_hugepage");
}

// Adds the path. If that would be one too many, adds kMoreFiles instead and returns false.
bool add(std::set<std::string>& files, const std::string& path) {
  const bool fits = files.size() < kMaxFiles || files.count(path) != 0;
  files.insert(fits ? path : kMoreFiles);
  return fits;
}

}  // namespace

void LoadedFiles::note(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  std::set<std::string> seen, code;
  for (std::string line; std::getline(maps, line);) {
    // address perms offset device inode path
    const bool is_code = line.find('x', line.find(' ')) == line.find(' ') + 3;
    size_t at = 0;
    for (int field = 0; field < 5 && at != std::string::npos; ++field) {
      at = line.find(' ', at);
      if (at != std::string::npos) at = line.find_first_not_of(' ', at);
    }
    if (at == std::string::npos || !is_file(line.substr(at))) continue;
    if (is_code) code.insert(line.substr(at));
    if (!add(seen, line.substr(at))) break;
  }
  if (seen.empty()) seen.insert("(a process whose mapped files cannot be read)");
  const std::lock_guard lock(mutex_);
  code_.merge(code);
  for (const std::string& path : seen)
    if (!add(paths_, path)) break;
}

void LoadedFiles::require_code(const std::vector<LoadedFile>& files) const {
  const std::lock_guard lock(mutex_);
  for (const LoadedFile& file : files)
    if (file.sha256.empty() && code_.count(file.path) != 0)
      throw std::runtime_error(fmt::format(
          "the plugin runs code of '{}', which cannot be read: leave files in place that were loaded", file.path));
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
      digest = sha256_of_file(path, kMaxMapped);
    } catch (const std::runtime_error&) {  // the file was removed or is not readable
    }
    files.push_back({path, std::move(digest)});
  }
  return files;
}

std::vector<LoadedFile> delivered(const std::vector<LoadedFile>& files, const std::string& plugin_sha256) {
  const auto plugin = std::ranges::find(files, plugin_sha256, &LoadedFile::sha256);
  if (plugin == files.end()) return {};
  const std::string folder = plugin->path.substr(0, plugin->path.rfind('/') + 1);
  std::vector<LoadedFile> found;
  for (const LoadedFile& file : files) {
    if (!folder.empty() && file.path.starts_with(folder))
      found.push_back({file.path.substr(folder.size()), file.sha256});
  }
  return found;
}

}  // namespace backplane::conform
