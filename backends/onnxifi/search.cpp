// SPDX-License-Identifier: Apache-2.0
#include "search.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace onnxifi_backend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libonnxifi-", kSuffix = ".so";
constexpr size_t kMaxFolders = 1000;  // a limit, as includes in the configuration may form a cycle

bool is_library_name(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.substr(0, kPrefix.size()) == kPrefix &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end != 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

// Each line is a folder, or "include" and a pattern of further files; '#' begins a comment.
void read_configuration(const std::string& file, std::vector<std::string>& folders, int depth = 0) {
  constexpr int kDeepest = 8;
  std::ifstream in(file);
  for (std::string line; depth < kDeepest && folders.size() < kMaxFolders && std::getline(in, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t") + 1 - first);
    constexpr std::string_view kInclude = "include";
    if (line.compare(0, kInclude.size(), kInclude) == 0 && line.find_first_of(" \t") == kInclude.size()) {
      std::istringstream patterns(line.substr(kInclude.size()));
      for (std::string pattern; patterns >> pattern;) {
        if (pattern.front() != '/') pattern = fs::path(file).parent_path() / pattern;
        for (const std::string& included : matches(pattern)) read_configuration(included, folders, depth + 1);
      }
    } else if (line.front() == '/') {
      folders.push_back(line);
    }
  }
}

std::vector<std::string> system_folders(const char* configuration) {
  std::vector<std::string> folders;
  if (const char* path = secure_getenv("LD_LIBRARY_PATH")) folders = split(path);
  read_configuration(configuration, folders);
  folders.insert(folders.end(), {"/lib", "/usr/lib", "/lib64", "/usr/lib64"});
  return folders;
}

// Returns the first world-writable path of these: the library, its folder, the folder of the link that leads to it.
// Returns an empty string if none is world-writable.
std::string writable_by_all(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  for (const fs::path& each : {file, file.parent_path(), path.parent_path()}) {
    struct stat info {};
    if (stat(each.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0) return each;
  }
  return {};
}

// Why `stat` failed, by its errno.
std::string unreachable(int error) {
  return error == ENOENT ? "does not exist" : std::string("cannot be reached: ") + std::strerror(error);
}

class Search {
 public:
  // Adds the libraries in a folder, in the order of their names. Returns 0, or the errno if the folder cannot be read.
  int folder(const std::string& path) {
    DIR* const opened = opendir(path.c_str());  // unlike access(), fails if a sandbox forbids it
    if (opened == nullptr) return errno;
    std::set<std::string> names;
    while (const dirent* const entry = readdir(opened)) {
      if (is_library_name(entry->d_name)) names.insert(entry->d_name);
    }
    closedir(opened);
    for (const std::string& name : names) add(path + "/" + name);
    return 0;
  }
  void named(const std::string& path) {
    struct stat info {};
    if (path.front() != '/') return refuse(path, "is not an absolute path");
    if (stat(path.c_str(), &info) != 0) return refuse(path, unreachable(errno));
    if (S_ISDIR(info.st_mode)) {
      if (const int error = folder(path); error != 0)
        refuse(path, std::string("cannot be read: ") + std::strerror(error));
      return;
    }
    if (!is_library_name(fs::path(path).filename().native())) return refuse(path, "is not named libonnxifi-*.so");
    add(path);
  }
  std::vector<Found> take() { return std::move(found_); }

 private:
  void add(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return refuse(path, unreachable(errno));
    if (!S_ISREG(info.st_mode)) return refuse(path, "is not a file");
    if (const std::string open = writable_by_all(path); !open.empty())
      return refuse(path, "is not used: " + open + " is world-writable; chmod o-w fixes that");
    if (seen_.emplace(info.st_dev, info.st_ino).second) found_.push_back({path, {}});
  }
  void refuse(const std::string& path, const std::string& why) { found_.push_back({path, path + " " + why}); }

  std::vector<Found> found_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

std::vector<Found> find_libraries(std::string_view named, const char* configuration) {
  Search search;
  for (const std::string& path : split(named)) search.named(path);
  for (const std::string& folder : system_folders(configuration)) {
    if (folder.front() == '/') search.folder(folder);
  }
  return search.take();
}

}  // namespace onnxifi_backend
