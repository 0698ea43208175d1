// SPDX-License-Identifier: Apache-2.0
// Files that save finding something out again.
#pragma once

#include <filesystem>
#include <string_view>

namespace backplane {

// $XDG_CACHE_HOME/backplane, otherwise ~/.cache/backplane; empty where there is neither, or no absolute path.
std::filesystem::path cache_folder();

// Writes a whole file or none, whoever writes it at the same time, and makes its folder. False where it cannot be
// written.
bool write_whole(const std::filesystem::path& file, std::string_view content);

}  // namespace backplane
