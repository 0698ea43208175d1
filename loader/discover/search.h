// SPDX-License-Identifier: Apache-2.0
// Finds the candidates and their order, as documented at bp_env_desc_t in loader.h.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"

namespace backplane {

// A file that was named, or a folder in which manifests are looked for. It need not exist.
struct SearchPath {
  std::filesystem::path path;  // absolute
  std::string found_by;        // "backend_files", "BACKPLANE_BACKEND_FILES", "XDG_DATA_HOME", …
  bool is_folder;
  bool named;  // by the user or framework
};

struct Found {
  std::filesystem::path path;  // absolute; need not exist; a manifest if it ends in .json, otherwise a library
  std::string found_by;        // as in SearchPath
  bool named;           // the user or framework named this file or its folder: any refusal but a duplicate is a warning
  bool folder = false;  // a folder that the framework named and that cannot be read
  // Found in a folder. Such a manifest is masked by an earlier one with the same id, and disabled by an earlier empty
  // one with the same file name.
  bool listed = false;
};

// The paths to search, in order.
std::vector<SearchPath> search_paths(const bp_env_desc_t& desc);
std::vector<Found> search(std::span<const SearchPath> paths);

// The folder of the library or program that contains this code; empty if unknown.
std::filesystem::path loader_folder();

}  // namespace backplane
