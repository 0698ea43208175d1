// SPDX-License-Identifier: Apache-2.0
// Checks who could replace a file: world-writable files and folders are not trusted, whatever they contain now.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "discover/refusal.h"

namespace backplane {

// Folders that were checked already: only the files in them are checked again. Valid during one search.
using CheckedFolders = std::set<std::string>;

// Follows `path` through every folder and link to its file. BP_REFUSED_UNTRUSTED if the file, its folder, or a folder
// or link on the way is world-writable. Parent folders with the sticky bit, such as /tmp, are accepted for folders that
// belong to the user or root. With elevated privileges everything must belong to root and not be group-writable. A
// missing file is not refused here.
Refusal check_writers(const std::filesystem::path& path, CheckedFolders* checked = nullptr);

}  // namespace backplane
