// SPDX-License-Identifier: Apache-2.0
#include "discover/search.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <span>
#include <system_error>

#include "base/abi.h"
#include "base/folder.h"
#include "host/variable.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifests = "backplane/backends.d";

fs::path full_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error);
  return (error ? path : result).lexically_normal();
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Adds `kManifests` in each base folder of the XDG Base Directory Specification, which requires relative paths to be
// ignored.
void base_folders(std::vector<SearchPath>& paths, const char* home_variable, const char* below_home,
                  const char* list_variable, const char* otherwise) {
  auto folder = [&](const fs::path& base, std::string_view found_by) {
    if (base.is_absolute()) paths.push_back({full_path(base / kManifests), std::string(found_by), true, false});
  };
  const char* own = variable(home_variable);
  const char* home = variable("HOME");
  if (own && *own)
    folder(own, home_variable);
  else if (home && *home)
    folder(fs::path(home) / below_home, home_variable);
  const char* list = variable(list_variable);
  for (const std::string& base : split(list && *list ? list : otherwise)) folder(base, list_variable);
}

// The path of the file that is mapped at an address; empty if there is none. Lines of `maps` have the form "begin-end
// flags offset device inode  path".
fs::path mapped_file(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) != 2 || address < begin || address >= end) continue;
    const size_t path = line.find('/');
    return path == line.npos ? fs::path() : fs::path(line.substr(path));
  }
  return {};
}

}  // namespace

fs::path loader_folder() {
  const auto here = reinterpret_cast<uintptr_t>(&loader_folder);
  Dl_info info{};
  fs::path file;
  if (dladdr(reinterpret_cast<const void*>(here), &info) && info.dli_fname) file = info.dli_fname;
  // dladdr returns the path with which the file was opened. It may be relative to a former working directory, but the
  // kernel has the absolute path.
  if (!file.is_absolute()) file = mapped_file(here);
  std::error_code error;
  file = fs::canonical(file, error);
  return error ? fs::path() : file.parent_path();
}

std::vector<SearchPath> search_paths(const bp_env_desc_t& desc) {
  std::vector<SearchPath> paths;
  const auto file = [&](const fs::path& path, std::string_view found_by) {
    paths.push_back({full_path(path), std::string(found_by), false, true});
  };
  const auto folder = [&](const fs::path& path, std::string_view found_by, bool named = false) {
    paths.push_back({full_path(path), std::string(found_by), true, named});
  };
  const bool only_given = desc.flags & BP_ENV_ONLY_GIVEN;
  const char* replace = only_given ? nullptr : variable("BACKPLANE_BACKEND_FILES");
  const char* add = only_given ? nullptr : variable("BACKPLANE_ADD_BACKEND_FILES");

  for (bp_text_t path : std::span(desc.backend_files, desc.backend_file_count))
    file(abi::string(path), "backend_files");
  if (replace)
    for (const std::string& path : split(replace)) file(path, "BACKPLANE_BACKEND_FILES");
  if (add)
    for (const std::string& path : split(add)) file(path, "BACKPLANE_ADD_BACKEND_FILES");
  if (replace) return paths;

  for (bp_text_t path : std::span(desc.backend_folders, desc.backend_folder_count))
    folder(abi::string(path), "backend_folders", true);
  if (only_given) return paths;

  base_folders(paths, "XDG_CONFIG_HOME", ".config", "XDG_CONFIG_DIRS", "/etc/xdg");
  folder(fs::path(BACKPLANE_CONFIG_FOLDER) / kManifests, "system");
  base_folders(paths, "XDG_DATA_HOME", ".local/share", "XDG_DATA_DIRS", "/usr/local/share:/usr/share");
  folder(fs::path(BACKPLANE_DATA_FOLDER) / kManifests, "system");
  if (const fs::path own = loader_folder(); !own.empty()) {
    folder(own / "../share" / kManifests, "loader");
    folder(own / "../../share" / kManifests, "loader");  // <prefix>/lib/<machine>, as on Debian
  }
  return paths;
}

// Manifests of a folder are in byte order of their names. A folder is read once, and an unreadable one is reported if
// it is `named`.
std::vector<Found> search(std::span<const SearchPath> paths) {
  std::vector<Found> found;
  std::set<fs::path> seen;
  for (const SearchPath& path : paths) {
    if (!path.is_folder) {
      found.push_back({path.path, path.found_by, true});
      continue;
    }
    std::error_code error;
    const fs::path real = fs::canonical(path.path, error);
    if (!error && !seen.insert(real).second) continue;
    std::vector<std::string> names;
    if (!error) names = names_in(real, error);
    if (error && path.named) found.push_back({path.path, path.found_by, true, true});
    for (const std::string& name : names)
      if (fs::path(name).extension() == ".json")
        found.push_back({path.path / name, path.found_by, path.named, false, true});
  }
  return found;
}

}  // namespace backplane
