// SPDX-License-Identifier: Apache-2.0
// Files in the cache folder.
#pragma once

#include <filesystem>
#include <string_view>

namespace backplane {

// $XDG_CACHE_HOME/backplane, otherwise ~/.cache/backplane; empty if neither variable is set, or its path is relative.
std::filesystem::path cache_folder();

// Writes a file atomically, also with concurrent writers, and creates its folder. False if it cannot be written.
bool write_whole(const std::filesystem::path& file, std::string_view content);

}  // namespace backplane
