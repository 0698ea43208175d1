// SPDX-License-Identifier: Apache-2.0
// The cache folder, and atomic writing of files.
#pragma once

#include <filesystem>
#include <string_view>

namespace backplane {

// $XDG_CACHE_HOME/backplane, or ~/.cache/backplane. Empty if neither XDG_CACHE_HOME nor HOME is set, the path is
// relative, or this process has elevated privileges (variable.h).
std::filesystem::path cache_folder();

// Writes a file atomically, even if other processes, also of other containers, write it too. Creates missing folders,
// which only this user may enter. Returns false if the file cannot be written.
bool write_whole(const std::filesystem::path& file, std::string_view content);

}  // namespace backplane
