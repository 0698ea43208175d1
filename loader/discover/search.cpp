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

class Search {
 public:
  void file(const fs::path& path, std::string_view found_by) {
    found_.push_back({full_path(path), std::string(found_by), true});
  }

  // Adds the manifests in a folder, in byte order of their names. Skips folders that were searched before. Reports an
  // unreadable folder if it is `named`.
  void folder(const fs::path& path, std::string_view found_by, bool named) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (!error && !seen_.insert(real).second) return;
    std::vector<std::string> names;
    if (!error) names = names_in(real, error);
    if (error && named) found_.push_back({full_path(path), std::string(found_by), true, true});
    for (const std::string& name : names)
      if (fs::path(name).extension() == ".json")
        found_.push_back({full_path(path) / name, std::string(found_by), named, false, true});
  }

  std::vector<Found> take() { return std::move(found_); }

 private:
  std::vector<Found> found_;
  std::set<fs::path> seen_;
};

// Searches the base folders of the XDG Base Directory Specification. Ignores relative paths, as it requires.
void base_folders(Search& search, const char* home_variable, const char* below_home, const char* list_variable,
                  const char* otherwise) {
  auto folder = [&](const fs::path& base, std::string_view found_by) {
    if (base.is_absolute()) search.folder(base / kManifests, found_by, false);
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

std::vector<Found> search(const bp_env_desc_t& desc) {
  Search search;
  const bool only_given = desc.flags & BP_ENV_ONLY_GIVEN;
  const char* replace = only_given ? nullptr : variable("BACKPLANE_BACKEND_FILES");
  const char* add = only_given ? nullptr : variable("BACKPLANE_ADD_BACKEND_FILES");

  for (bp_text_t file : std::span(desc.backend_files, desc.backend_file_count))
    search.file(abi::string(file), "backend_files");
  if (replace)
    for (const std::string& file : split(replace)) search.file(file, "BACKPLANE_BACKEND_FILES");
  if (add)
    for (const std::string& file : split(add)) search.file(file, "BACKPLANE_ADD_BACKEND_FILES");
  if (replace) return search.take();

  for (bp_text_t folder : std::span(desc.backend_folders, desc.backend_folder_count))
    search.folder(abi::string(folder), "backend_folders", true);
  if (only_given) return search.take();

  base_folders(search, "XDG_CONFIG_HOME", ".config", "XDG_CONFIG_DIRS", "/etc/xdg");
  search.folder(fs::path(BACKPLANE_CONFIG_FOLDER) / kManifests, "system", false);
  base_folders(search, "XDG_DATA_HOME", ".local/share", "XDG_DATA_DIRS", "/usr/local/share:/usr/share");
  search.folder(fs::path(BACKPLANE_DATA_FOLDER) / kManifests, "system", false);
  if (const fs::path own = loader_folder(); !own.empty()) {
    search.folder(own / "../share" / kManifests, "loader", false);
    search.folder(own / "../../share" / kManifests, "loader", false);  // <prefix>/lib/<machine>, as on Debian
  }
  return search.take();
}

}  // namespace backplane
