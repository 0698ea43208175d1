// SPDX-License-Identifier: Apache-2.0
// Who could replace a file: what anybody can write is not trusted, whatever it holds now.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "discover/refusal.h"

namespace backplane {

// Folders that were found fine: what lies in them is looked at alone. To be kept for one listing and no longer.
using CheckedFolders = std::set<std::string>;

// Follows `path` through every folder and link to its file. BP_REFUSED_UNTRUSTED where anybody can write the file or
// its folder, or can replace a folder or link on the way. Folders above it with the sticky bit, such as /tmp, are fine
// for what belongs to the user or root. With elevated privileges all must belong to root, and no group can write. What
// does not exist is no refusal.
Refusal check_writers(const std::filesystem::path& path, CheckedFolders* checked = nullptr);

}  // namespace backplane
